"""The commands of `edge fleet` that show the components on the store."""

import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec
from rich.table import Table

from edge.access.components import is_away, public_component
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import counted, print_text, printable
from edge.cli.terminal.store_access import (
    CommandOutput,
    StoreAccess,
    run_on_store,
    settings_option,
    store_command,
)
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.features.fleet.cli.keys import keys
from edge.features.fleet.cli.send import results, send
from edge.features.fleet.signature import MOST_CHARACTERS, FleetState
from edge.features.fleet.upgrade_command import UpgradeHost, execute_upgrade
from edge.features.fleet.upgrade_record import UpgradeReply
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.text import Text
from edge.store import components
from edge.store.commit import join
from edge.store.components import KnownComponent, load_all
from edge.store.server_time import server_time


@click.command(epilog="Example: edge fleet upgrade < command.jws")
def upgrade() -> None:
    """Upgrade the package by the signed command on standard input; microdcs-edge-upgrade@.service calls it as root.

    The gateway passes on the commands `upgrade` that it is sent. Signature, policy and expiry are checked again here,
    against files that only root writes, and each command is executed once. A newer version of the package is installed
    from the repository of /etc/apt/sources.list.d/microdcs-edge.sources, and nothing else. The answer is one line of
    JSON, the result a file in /var/lib/microdcs-edge-upgrade.
    """

    def answer(state: FleetState, reason: str = "") -> None:
        sys.stdout.buffer.write(msgspec.json.encode(UpgradeReply(state=state, reason=reason)) + b"\n")
        sys.stdout.flush()

    def begin(name: str) -> None:
        click.echo(f"upgrade by a command of {name}", err=True)
        answer(FleetState.EXECUTING)
        # The gateway that has read the answer is restarted meanwhile.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    if os.geteuid() != 0:
        raise Refused("upgrade", "only root installs packages", "microdcs-edge-upgrade.socket calls this command.")
    text = sys.stdin.buffer.readline(MOST_CHARACTERS + 2).decode("ascii", errors="replace").strip()
    try:
        ended = execute_upgrade(text, UpgradeHost(), begin)
    except EdgeError as error:
        answer(FleetState.REFUSED, str(error))
        raise
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}"
        answer(FleetState.REFUSED, reason)
        raise Refused("upgrade", reason, "The package makes this folder: install microdcs-edge.") from error
    click.echo(ended.output or ended.reason, err=True)
    if ended.state is not FleetState.SUCCESSFUL:
        raise SystemExit(1)


def table(found: Iterable[KnownComponent], now_ms: int) -> Table:
    """Return components as a table."""
    columns = ("name", "kind", "version", "state", "up", "jobs", "alarms", "certificate until", "drift", "labels")
    fitted_table = plain_table(*columns, empty="no components")
    for known_component in found:
        component = known_component.component
        cells = (
            component.id,
            component.kind,
            component.version,
            state(known_component, now_ms),
            _uptime(known_component, now_ms),
            "" if component.jobs is None else component.jobs,
            "" if component.alarms is None else component.alarms,
            component.certificate_expiry,
            "-" if component.drift is None else component.drift or "none",
            " ".join(f"{name}={value}" for name, value in component.labels.items()),
        )
        fitted_table.add_row(*map(printable, cells))
    return fitted_table


def lines(found: KnownComponent, now_ms: int) -> Iterator[str]:
    """Yield the lines of one component."""
    component = found.component
    yield f"{component.kind} {component.id}, version {component.version}: {state(found, now_ms)}"
    yield f"  on {component.host}, process {component.pid}, since {local_time(component.started)}"
    yield f"  last heartbeat {local_time(found.seen_s * 1000)}"
    if component.scopes:
        yield f"  scopes {', '.join(component.scopes)}"
    if component.labels:
        yield f"  labels {' '.join(f'{name}={value}' for name, value in component.labels.items())}"
    if component.jobs is not None:
        alarms = "" if component.alarms is None else f", {counted(component.alarms, 'alarm')}"
        yield f"  {counted(component.jobs, 'job')} at work{alarms}"
    if component.certificate_expiry:
        yield f"  certificates valid until {component.certificate_expiry}"
    if component.drift is not None:
        yield f"  configuration drift: {component.drift or 'none'}"
    for plugin in found.plugins:
        yield f"  {plugin.kind} {plugin.name}: {plugin.state}{f', {plugin.problem}' if plugin.problem else ''}"


def state(found: KnownComponent, now_ms: int) -> str:
    """Return the state of a component in a few words."""
    if is_away(found, now_ms):
        return f"away since {local_time(found.seen_s * 1000)}"
    return str(found.component.problems) or "healthy"


def _uptime(found: KnownComponent, now_ms: int) -> str:
    if is_away(found, now_ms):
        return ""
    minutes = max(0, now_ms - found.component.started) // 60_000
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min"


@click.group(cls=CommandGroup)
def fleet() -> None:
    """Show the components of a plant, and send them signed commands."""


@fleet.command("list", epilog="Example: edge fleet list")
@wide_option
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """List the gateways and workers on the store: version, uptime, health, jobs, alarms, certificates, drift.

    A component without a heartbeat for 45 seconds is `away`.
    """
    listed, now = (await load_all(at.store)).values(), await server_time(at.store)
    data = [public_component(component, now) for component in listed]
    return CommandOutput(data, table(listed, now))


@fleet.command(epilog="Example: edge fleet show gw-07")
@click.argument("name")
@store_command
async def show(at: StoreAccess, name: str) -> CommandOutput:
    """Show one component with its equipment and node kinds."""
    component, now = (await load_all(at.store)).get(name), await server_time(at.store)
    if component is None:
        raise Refused(
            "component",
            Text.of("there is no component {name!r} on this store", name=name),
            "List them with: edge fleet list",
        )
    return CommandOutput(public_component(component, now), "\n".join(lines(component, now)))


@fleet.command(epilog="Example: edge fleet forget gw-03")
@click.argument("names", nargs=-1)
@click.option("--after-days", type=click.IntRange(1, 3650), help="Remove components automatically after so many days.")
@settings_option
def forget(names: tuple[str, ...], after_days: int | None, settings_file: Path | None) -> None:
    """Remove components from the list; one that works comes back with its next heartbeat.

    Without NAMES and with --after-days only the setting is changed (30 days as delivered).
    """
    if not names and after_days is None:
        raise click.UsageError("name a component or --after-days")

    async def work(at: StoreAccess) -> str:
        keys = at.store.keys
        setting = [components.set_remove_after(keys, after_days * 86_400)] if after_days is not None else []
        async with recorded(at, "fleet forget", " ".join(names), f"after {after_days} days" if after_days else ""):
            await at.store.commit(join([*setting, *([components.remove(keys, names)] if names else [])]))
        return f"{len(names)} components removed" if names else f"removed after {after_days} days without heartbeat"

    print_text(run_on_store(settings_file, work))


fleet.add_command(send)
fleet.add_command(results)
fleet.add_command(keys)
fleet.add_command(upgrade)
