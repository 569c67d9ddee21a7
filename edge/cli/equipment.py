"""`edge equipment`: which equipment is there, how it does, and what it says when it is asked."""

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from edge.cli.terminal import say
from edge.cli.visit import console, json_option, print_json, settings_option, visit

if TYPE_CHECKING:
    from edge.cli.equipment_view import Seen
    from edge.maintenance.ping import PingResult


@click.group()
def equipment() -> None:
    """Look which equipment is there, what it owes and what failed, or ask it now.

    Gateways look every five seconds and leave word in the store: what fails at once, mere counts every half minute.
    The exit status is 0 when it is done, 1 when it is refused or something is away, with the reason, and 2 when
    settings or arguments cannot be used.
    """


@equipment.command("list", epilog="Example: edge equipment list")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List all equipment of the gateways on this store."""
    from edge.cli.equipment_view import as_data, table

    found = asyncio.run(_look(settings_file))
    if as_json:
        print_json([as_data(each) for each in found])
    elif found:
        console().print(table(found))
    else:
        say("no gateway has told of equipment yet")


@equipment.command(epilog="Example: edge equipment show wrench")
@click.argument("name")
@settings_option
@json_option
def show(name: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Show all that is known of a piece of equipment, as each gateway sees it that works with it.

    NAME is that of [southbound.NAME] in the settings. Counts are those since the gateway started.
    """
    from edge.cli.equipment_view import as_data, report
    from edge.errors import Refused

    found = [each for each in asyncio.run(_look(settings_file)) if each.health.name == name]
    if not found:
        advice = "Look for it: edge equipment list"
        raise Refused("unknown_equipment", f"no gateway has told of equipment {name!r}", advice)
    if as_json:
        print_json([as_data(each) for each in found])
    else:
        say("\n\n".join("\n".join(report(each)) for each in found))


@equipment.command(epilog="Example: edge equipment ping wrench")
@click.argument("names", nargs=-1)
@settings_option
@json_option
def ping(names: tuple[str, ...], settings_file: Path | None, *, as_json: bool) -> None:
    """Ask equipment now, beside the gateway: whether it is there, and how long that takes.

    NAMES are those of [southbound.NAME] in the settings; without one all is asked. An OPC UA server is asked for its
    time, an MQTT broker for the presence that the equipment has left there. The exit status is 1 when one is away or
    does not answer.
    """
    from edge.cli.equipment_view import pong_data, pong_table

    pongs = asyncio.run(_ask(settings_file, names))
    if as_json:
        print_json([pong_data(name, pong) for name, pong in pongs.items()])
    else:
        console().print(pong_table(pongs))
    raise SystemExit(1 if any(pong.answers is False for pong in pongs.values()) else 0)


async def _look(settings_file: Path | None) -> "list[Seen]":
    from edge.cli.equipment_view import seen
    from edge.store.health_reports import load_all

    async with visit(settings_file) as at:
        return seen(await load_all(at.store, at.settings.gateway.scopes))


async def _ask(settings_file: Path | None, names: tuple[str, ...]) -> "dict[str, PingResult]":
    from edge.cli.visit import quiet, unusable
    from edge.config import load_settings
    from edge.maintenance import ping as asking
    from edge.southbound.kinds import EQUIPMENT_SETTINGS

    settings = load_settings(settings_file, os.environ, EQUIPMENT_SETTINGS)
    if unknown := [name for name in names if name not in settings.southbound]:
        unusable(*(f"the settings have no [southbound.{name}]" for name in unknown))
    quiet("critical")
    chosen = names or tuple(settings.southbound)
    async with asyncio.TaskGroup() as tasks:
        asked = {
            name: tasks.create_task(asking.ping(name, settings.southbound[name], settings), name=f"ping {name}")
            for name in chosen
        }
    return {name: task.result() for name, task in asked.items()}
