"""`edge equipment`: lists equipment with its state, and pings it."""

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from edge.access.working_instances import load_reports
from edge.app.features import equipment_kinds
from edge.app.sections import declared_sections
from edge.cli.equipment.release import release_stops
from edge.cli.equipment.table import (
    EquipmentView,
    as_data,
    connected_gateways,
    equipment_views,
    ping_data,
    ping_table,
    report,
    table,
)
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import (
    json_option,
    log_to_stderr,
    open_access,
    open_console,
    print_json,
    settings_option,
    usage_failure,
)
from edge.config import load_settings
from edge.equipment import ping as asking
from edge.equipment.ping import PingResult
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.task_group import TaskGroup


@click.group(cls=CommandGroup)
def equipment() -> None:
    """Show equipment with its connection, open commands and faults, ping it, or release its open stops.

    Gateways check every five seconds and write a report to the store: faults at once, counters every half minute. The
    exit status is 0 on success, 1 when the request is refused or equipment is disconnected, and 2 when settings or
    arguments are invalid.
    """


@equipment.command("list", epilog="Example: edge equipment list")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List all equipment of the gateways on this store."""
    found = asyncio.run(_read_views(settings_file))
    if as_json:
        print_json([as_data(equipment_view) for equipment_view in found])
    elif found:
        open_console().print(table(found))
    else:
        print_text("no gateway has reported equipment yet")


@equipment.command(epilog="Example: edge equipment show wrench")
@click.argument("name")
@settings_option
@json_option
def show(name: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Show one piece of equipment as each gateway that uses it reports it.

    NAME is that of [southbound.NAME] in the settings. Counters start with the gateway.
    """
    found = [
        equipment_view
        for equipment_view in asyncio.run(_read_views(settings_file))
        if equipment_view.health.name == name
    ]
    if not found:
        advice = "List the equipment: edge equipment list"
        raise Refused("unknown_equipment", f"no gateway has reported equipment {name!r}", advice)
    if as_json:
        print_json([as_data(equipment_view) for equipment_view in found])
    else:
        print_text("\n\n".join("\n".join(report(equipment_view)) for equipment_view in found))


@equipment.command(epilog="Example: edge equipment ping wrench")
@click.argument("names", nargs=-1)
@settings_option
@json_option
def ping(names: tuple[str, ...], settings_file: Path | None, *, as_json: bool) -> None:
    """Ping equipment on a connection of its own and measure the response time.

    NAMES are those of [southbound.NAME] in the settings; without a name all equipment is pinged. From an OPC UA server
    the time is read, from an MQTT broker the retained presence. Equipment that allows a single client works while a
    gateway is that client. The exit status is 1 when equipment is disconnected or does not answer.
    """
    results = asyncio.run(_ping_all(settings_file, names))
    if as_json:
        print_json([ping_data(name, result) for name, result in results.items()])
    else:
        open_console().print(ping_table(results))
    raise SystemExit(1 if any(result.answers is False for result in results.values()) else 0)


@equipment.command(epilog='Example: edge equipment release wrench --reason "air cut off, bolt checked"')
@click.argument("name")
@click.argument("command", required=False)
@click.option("--reason", required=True, help="How the tool was made safe.")
@settings_option
@json_option
def release(name: str, command: str | None, reason: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Release stops and resets that the equipment has not confirmed.

    They are sent until the equipment answers, as the tool may still be active. Make it safe by hand, then release
    them: all of NAME, or those of one COMMAND. The name of the user who runs this command, and the reason, stay with
    the job; the gateway writes an audit record to its log.
    """
    released = asyncio.run(release_stops(settings_file, name, command, reason))
    if as_json:
        print_json(
            [
                {"command": released_stop.command, "phase": released_stop.phase, "job": released_stop.job_order_id}
                for released_stop in released
            ]
        )
    else:
        for stop in released:
            print_text(f"released: {stop.phase} of {printable(stop.command)}, job {printable(stop.job_order_id)}")


async def _read_views(settings_file: Path | None) -> list[EquipmentView]:

    async with open_access(settings_file) as at:
        return equipment_views(await load_reports(at.store, at.settings.gateway.scopes))


async def _ping_all(settings_file: Path | None, names: tuple[str, ...]) -> dict[str, PingResult]:

    settings = load_settings(settings_file, os.environ, declared_sections())
    if unknown := [name for name in names if name not in settings.southbound]:
        usage_failure(*(f"the settings have no [southbound.{name}]" for name in unknown))
    log_to_stderr("critical")
    chosen, kinds = names or tuple(settings.southbound), equipment_kinds()
    sections = {name: settings.southbound[name] for name in chosen}
    async with TaskGroup() as tasks:
        asked = {
            name: tasks.create_task(asking.ping(kinds[section.kind].ping, name, section, settings), name=f"ping {name}")
            for name, section in sections.items()
        }
    results = {name: task.result() for name, task in asked.items()}
    if all(result.answers is not False for result in results.values()):
        return results
    clients = await _read_clients(settings_file)
    return {name: asking.with_clients(result, clients.get(name, ())) for name, result in results.items()}


async def _read_clients(settings_file: Path | None) -> Mapping[str, Sequence[str]]:
    """Return the gateways that are connected to equipment, by its name; none without the store."""
    try:
        return connected_gateways(await _read_views(settings_file))
    except EdgeError:
        return {}
