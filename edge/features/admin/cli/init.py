"""`edge init`: the settings of a site, from a few answers that are tried at once."""

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import get_type_hints

import click

from edge.cli.terminal.output import print_findings, print_json, print_text, usage_failure
from edge.cli.terminal.store_access import json_option, log_to_stderr
from edge.config import GatewaySettings, MqttSettings
from edge.config.value import from_toml
from edge.features.admin.site_settings import (
    FILE,
    Site,
    SiteEquipment,
    examine_site,
    is_address,
    next_steps,
    write_site,
)
from edge.foundation.errors import SettingsError
from edge.model.finding import HealthFinding, public_form

_NO_BROKER = "none"
_NAME = get_type_hints(GatewaySettings, include_extras=True)["name"]
_BROKER = get_type_hints(MqttSettings, include_extras=True)["url"]


def ask_site(directory: Path, addresses: str) -> Site:
    """Read all answers from the terminal. Raises click.Abort.

    `directory` is the folder of the settings, `addresses` describes the addresses that equipment can have.
    """
    print_text(f"Settings of this site, for {directory}. Enter takes what stands in brackets.")
    host = socket.gethostname().partition(".")[0]
    name = _ask("Name of this gateway", "edge" if _faults(host, _NAME) else host, lambda text: _faults(text, _NAME))
    scope = _ask("Scope (station) whose jobs run here", "station-1", lambda text: _faults(text, _NAME))
    broker = _ask(
        f"MQTT broker of the MES (mqtt://host, mqtts://host, {_NO_BROKER})",
        MqttSettings().url,
        lambda text: () if text == _NO_BROKER else _faults(text, _BROKER),
    )
    if broker == _NO_BROKER:
        return Site(name, (scope,), "", equipment=tuple(_ask_equipment(addresses, has_broker=False)))
    username = click.prompt("User name at the broker", default="", show_default=False)
    password = click.prompt("Its password", default="", hide_input=True, show_default=False) if username else ""
    return Site(name, (scope,), broker, username, password, tuple(_ask_equipment(addresses, has_broker=True)))


def _ask_equipment(addresses: str, *, has_broker: bool) -> Iterator[SiteEquipment]:
    """Yield equipment until an empty name."""
    names: set[str] = set()
    takers: dict[str, str] = {}

    def name_faults(text: str) -> Iterator[str]:
        if text in names:
            yield f"{text} is there already"
        elif text:
            yield from _faults(text, _NAME)

    def address_faults(text: str) -> Iterator[str]:
        if not is_address(text):
            yield f"{text!r} is not an address"
        elif text == "mqtt" and not has_broker:
            yield "the gateway has no broker; expected an address with a host"

    def action_faults(text: str) -> Iterator[str]:
        if not _parts(text):
            yield "expected at least one type_id"
        yield from (f"{part} is used by {takers[part]} already" for part in _parts(text) if part in takers)

    while name := _ask("Equipment: name (Enter ends)", "", name_faults):
        address = _ask(f"{name}: address ({addresses})", "mqtt" if has_broker else None, address_faults)
        type_ids = _parts(_ask(f"{name}: type_ids of its actions, separated by commas", None, action_faults))
        names.add(name)
        takers |= dict.fromkeys(type_ids, name)
        yield SiteEquipment(name, address, type_ids)


def _ask(question: str, default: str | None, faults: Callable[[str], Iterable[str]]) -> str:
    """Return the first answer without a fault."""

    def read(text: str) -> str:
        if found := list(faults(text.strip())):
            raise click.UsageError("; ".join(found))
        return text.strip()

    answer: str = click.prompt(question, default=default, show_default=bool(default), value_proc=read)
    return answer


def _faults(answer: str, hint: object) -> tuple[str, ...]:
    return tuple(map(str, from_toml(answer, hint).faults))


def _parts(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


_DIRECTORY = "/etc/microdcs-edge"
_ADDRESS = "mqtt, mqtt://HOST, ijt+opc.tcp://HOST:PORT, vision+opc.tcp://HOST:PORT or openprotocol+tcp://HOST:PORT"


@click.command(epilog="Example: edge init --name line-3 --broker mqtt://10.0.0.5 --equipment wrench mqtt tighten.v1")
@click.option("--name", help="Name of the gateway. Without it, and on a terminal, all answers are asked for.")
@click.option("--scope", "scopes", multiple=True, help="ISA-95 scope (station) whose jobs run here. May be repeated.")
@click.option(
    "--broker", metavar="URL", help="MQTT broker of the MES; empty for none. [default: mqtt://127.0.0.1:1883]"
)
@click.option("--username", default="", help="User name at the broker.")
@click.option("--password-file", type=click.Path(path_type=Path, dir_okay=False, exists=True), help="Password of it.")
@click.option(
    "--equipment",
    nargs=3,
    multiple=True,
    metavar="NAME ADDRESS TYPE_IDS",
    help=f"Equipment: its name, {_ADDRESS}, and the type_ids of its actions, separated by commas. May be repeated.",
)
@click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False, readable=False),
    default=_DIRECTORY,
    show_default=True,
    help="Folder of the settings.",
)
@click.option("--replace", is_flag=True, help="Replace the settings that an earlier call wrote.")
@json_option
def init(
    name: str | None,
    scopes: tuple[str, ...],
    broker: str | None,
    username: str,
    password_file: Path | None,
    equipment: tuple[tuple[str, str, str], ...],
    directory: Path,
    *,
    replace: bool,
    as_json: bool,
) -> None:
    """Write the settings of a site and try them.

    The answers go into conf.d/50-site.toml. Store, broker and equipment are tried at once; one that does not answer
    is reported and may come later. On a terminal a wrong answer is asked for again. The exit status is 0 when the
    settings are written, else 2, or 1 after Ctrl-C or Ctrl-D at a question, and all files are as they were.
    """
    log_to_stderr("critical")
    file = directory / FILE
    if file.exists() and not replace:
        usage_failure(f"{file} is there already; change it with an editor, or replace it with --replace")
    if name is None and sys.stdin.isatty():
        _require_writable(directory)
        site = ask_site(directory, _ADDRESS)
    else:
        password = password_file.read_text(encoding="utf-8").rstrip("\r\n") if password_file else ""
        pieces = tuple(_equipment(*row) for row in equipment)
        url = MqttSettings().url if broker is None else broker
        site = Site(name or "edge", scopes or ("station-1",), url, username, password, pieces)
    try:
        settings = write_site(site, directory)
    except SettingsError as error:
        usage_failure(*error.problems)
    except OSError as error:
        usage_failure(f"{error.filename}: cannot be written: {error.strerror}; call it as root (sudo)")
    if not as_json:
        print_text(f"written: {file}")
    _report(site, directory, asyncio.run(examine_site(settings)), as_json=as_json)


def _require_writable(directory: Path) -> None:
    """Exit with status 2 where the answers could not be written, before the questions."""
    there = next(parent for parent in (directory, *directory.absolute().parents) if parent.exists())
    if not os.access(there, os.W_OK | os.X_OK):
        usage_failure(f"{there}: cannot be written by this user; call it as root (sudo)")


def _equipment(name: str, address: str, type_ids: str) -> SiteEquipment:

    if not is_address(address):
        usage_failure(f"equipment {name}: {address!r} is not an address; expected {_ADDRESS}")
    return SiteEquipment(
        name, address, tuple(identifier.strip() for identifier in type_ids.split(",") if identifier.strip())
    )


def _report(site: Site, directory: Path, findings: Sequence[HealthFinding], *, as_json: bool) -> None:

    steps = list(next_steps(site, directory, is_installed=str(directory) == _DIRECTORY))
    if as_json:
        print_json({"file": str(directory / FILE), "findings": tuple(map(public_form, findings)), "next": steps})
        return
    print_findings(findings, as_json=False)
    print_text("next:")
    for step in steps:
        print_text(f"  {step}")
