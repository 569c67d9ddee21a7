"""`edge init`: the settings of a site, from a few answers that are tried at once."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import click

from edge.cli.terminal.output import print_findings, print_json, print_text, usage_failure
from edge.cli.terminal.store_access import json_option, log_to_stderr
from edge.config import MqttSettings
from edge.features.admin.cli.site_questions import ask_site
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
from edge.model.finding import HealthFinding

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
        print_json({"file": str(directory / FILE), "findings": findings, "next": steps})
        return
    print_findings(findings, as_json=False)
    print_text("next:")
    for step in steps:
        print_text(f"  {step}")
