"""`edge equipment`: lists equipment with its state, pings it, and releases its open stops."""

import asyncio
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

import click
from rich.table import Table
from rich.text import Text as RichText

from edge.access.instances import EquipmentView, equipment_views, load_reports
from edge.app.features import equipment_kinds, gateway_settings
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import operator_name, recorded
from edge.cli.terminal.output import did_you_mean, printable, usage_failure, wrapped
from edge.cli.terminal.store_access import (
    SOURCE,
    CommandOutput,
    StoreAccess,
    json_option,
    log_to_stderr,
    open_access,
    run_on_store,
    settings_option,
    store_command,
)
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.equipment import ping as asking
from edge.equipment.ping import PingResult
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.model.equipment_health import EquipmentHealth, OpenSafing
from edge.station.intervene import ReleaseRequest
from edge.station.intervene import release as release_open
from edge.station.safing_tries import problem_of

_STYLES = {"yes": "green", "no": "bold red", "gateway away": "magenta"}


def connected_gateways(views: Iterable[EquipmentView]) -> dict[str, list[str]]:
    """Return the gateways at work that are connected to equipment, by the name of the equipment."""
    found: dict[str, list[str]] = {}
    for view in views:
        if view.at_work and view.health.connected:
            found.setdefault(view.health.name, []).append(f"gateway {view.gateway}")
    return found


def table(views: Iterable[EquipmentView]) -> Table:
    """Return equipment as a table, one per row."""
    columns: tuple[str, ...] = ("name", "kind", "gateway", "connected", "last seen", "open commands", "open stops")
    columns += ("failed", "refused", "problem")
    drop = ("refused", "gateway", "failed", "last seen", "open commands", "kind", "open stops")
    return plain_table(*columns, drop=drop, rows=map(_cells, views), empty="no gateway has reported equipment yet")


def _cells(view: EquipmentView) -> tuple[object, ...]:
    health, connected = view.health, _connected(view)
    return (
        RichText(health.name, style="bold"),
        health.kind,
        view.gateway,
        RichText(connected, style=_STYLES.get(connected, "")),
        local_time(health.last_seen),
        health.outstanding,
        RichText(str(health.safing), style="bold red" if health.safing else ""),
        health.failed,
        health.refused,
        RichText(printable(_trouble(health)), style="red"),
    )


def _trouble(health: EquipmentHealth) -> str:
    """Return why it cannot work now, first that its tool may still be active; else its last error."""
    unsafe, obstacle = str(problem_of(health.open_safing)), str(health.obstacle)
    if unsafe and unsafe not in obstacle:
        return f"{unsafe}; {obstacle}"
    return obstacle or (str(health.last_error) and f"last error: {health.last_error}")


def report(equipment_view: EquipmentView) -> Iterator[str]:
    """Yield the report of one piece of equipment, line by line."""
    health = equipment_view.health
    facts = {
        "equipment": health.name,
        "kind": health.kind,
        "gateway": equipment_view.gateway if equipment_view.at_work else f"{equipment_view.gateway}, not running",
        "as of": local_time(equipment_view.at),
        **_connection_facts(equipment_view),
        "last seen": local_time(health.last_seen) or "not since the gateway started",
        "open commands": f"{health.outstanding} without an answer",
        "answered": f"{health.answered} commands, {health.failed} of them failed",
        "open stops": f"{health.safing}, the tool may still be active" if health.safing else "none",
        "results": f"{health.ok} OK, {health.not_ok} not OK, {health.late} late, {health.unknown} of unknown outcome",
        "starts": f"{health.repeated_starts} repeated",
        "stops": f"{health.declined_stops} declined",
        "traces": f"{health.lost_traces} lost",
        "ignored": f"{health.ignored} late or repeated answers and events without a receiver, "
        f"{health.unsolicited} unsolicited answers",
        "refused": f"{health.refused} messages",
        "problem": str(health.problem) or "none",
        "last error": health.last_error or "none",
        "did not count": f"{local_time(health.last_late_at)} result {health.last_late}" if health.last_late else "none",
        "programs": ", ".join(health.programs) or "it lists none",
    }
    width = max(map(len, facts))
    for name, text in facts.items():
        yield f"{name:<{width}}  {wrapped(text, width + 2)}"
        if name == "open stops":
            open_lines = map(unconfirmed_line, health.open_safing)
            yield from (f"{'':<{width}}  {wrapped(line, width + 2)}" for line in open_lines)


def unconfirmed_line(unconfirmed: OpenSafing) -> str:
    """Return a stop, a reset or a release without a confirmation as a line."""
    subject = f"{unconfirmed.what} of {unconfirmed.command_id}" if unconfirmed.command_id else unconfirmed.what
    tries = "1 try" if unconfirmed.tries == 1 else f"{unconfirmed.tries} tries"
    return f"{subject} since {local_time(unconfirmed.since)}, {tries}: {unconfirmed.reason or 'no answer yet'}"


def _connection_facts(equipment_view: EquipmentView) -> dict[str, str]:
    state = equipment_view.health.connection
    facts = {"connected": f"{_connected(equipment_view)}{f', since {local_time(state.since)}' if state.since else ''}"}
    if equipment_view.health.connected is not False:
        return facts
    unknown = "no reason known" if state.since else "its first try has not ended"
    obstacle = str(equipment_view.health.obstacle)
    facts["not connected"] = obstacle.removeprefix("not connected").removeprefix(": ") or unknown
    return facts | ({"next try": f"within {state.retry_s:g} s"} if state.retry_s else {})


def ping_data(name: str, result: PingResult) -> dict[str, object]:
    """Return a ping result as data."""
    seconds = None if result.seconds is None else round(result.seconds, 6)
    return {"name": name, "answers": result.answers, "response_seconds": seconds, "detail": result.detail}


def ping_table(results: Mapping[str, PingResult]) -> Table:
    """Return ping results as a table, one per row."""
    return plain_table(
        *("name", "answers", "time", "detail"),
        rows=(
            (
                RichText(name, style="bold"),
                RichText(answers := _YES_OR_NO[result.answers], style=_STYLES.get(answers, "")),
                "" if result.seconds is None else f"{result.seconds * 1000:.1f} ms",
                result.detail,
            )
            for name, result in results.items()
        ),
    )


def _connected(equipment_view: EquipmentView) -> str:
    if holder := equipment_view.health.connection.holder:
        return f"by {printable(holder)}" if equipment_view.at_work else "gateway away"
    return _YES_OR_NO[equipment_view.health.connected] if equipment_view.at_work else "gateway away"


_YES_OR_NO = {None: "unknown", True: "yes", False: "no"}


@click.group(cls=CommandGroup)
def equipment() -> None:
    """Show equipment with its connection, open commands and faults, ping it, or release its open stops.

    Gateways check every five seconds and write a report to the store: faults at once, counters every half minute. The
    exit status is 0 on success, 1 when the request is refused or equipment is disconnected, and 2 when settings or
    arguments are invalid.
    """


@equipment.command("list", epilog="Example: edge equipment list")
@wide_option
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """List all equipment of the gateways on this store."""
    views = await _read_views(at)
    return CommandOutput([view.public() for view in views], table(views))


@equipment.command(epilog="Example: edge equipment show wrench")
@click.argument("name")
@store_command
async def show(at: StoreAccess, name: str) -> CommandOutput:
    """Show one piece of equipment as each gateway that uses it reports it.

    NAME is that of [southbound.NAME] in the settings. Counters start with the gateway.
    """
    views = [view for view in await _read_views(at) if view.health.name == name]
    if not views:
        known = {view.health.name for view in await _read_views(at)}
        advice = did_you_mean(name, known, "List the equipment: edge equipment list")
        raise Refused("unknown_equipment", Text.of("no gateway has reported equipment {name!r}", name=name), advice)
    return CommandOutput([view.public() for view in views], "\n\n".join("\n".join(report(view)) for view in views))


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
    CommandOutput(
        [ping_data(name, result) for name, result in results.items()],
        ping_table(results),
        is_failed=any(result.answers is False for result in results.values()),
    ).print(as_json=as_json)


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
    the job and in the audit trail.
    """
    if name not in gateway_settings(settings_file).southbound:
        _no_section((name,), gateway_settings(settings_file).southbound)

    async def work(at: StoreAccess) -> CommandOutput:
        request = ReleaseRequest(
            equipment=name,
            scopes=at.settings.gateway.scopes,
            command_id=command,
            by=operator_name(),
            reason=reason,
            source=SOURCE,
            event_id=str(uuid.uuid4()),
        )
        type_ids = {name: at.settings.southbound[name].type_ids}
        async with recorded(at, "equipment release", command or name, reason):
            released = await release_open(at.store, type_ids, request, at.settings.retention.dedupe * 1000)
        return CommandOutput(
            [{"command_id": stop.command, "phase": stop.phase, "job_order_id": stop.job_order_id} for stop in released],
            tuple(
                f"released: {stop.phase} of {printable(stop.command)}, job {printable(stop.job_order_id)}"
                for stop in released
            ),
        )

    run_on_store(settings_file, work).print(as_json=as_json)


def _no_section(names: Sequence[str], known: Iterable[str]) -> NoReturn:
    sections = tuple(known)
    faults = ((f"the settings have no [southbound.{name}]", did_you_mean(name, sections)) for name in names)
    usage_failure(*(". ".join(filter(None, fault)) for fault in faults))


async def _read_views(at: StoreAccess) -> list[EquipmentView]:
    return equipment_views(await load_reports(at.store, at.settings.gateway.scopes))


async def _ping_all(settings_file: Path | None, names: tuple[str, ...]) -> dict[str, PingResult]:

    settings = gateway_settings(settings_file)
    if unknown := [name for name in names if name not in settings.southbound]:
        _no_section(unknown, settings.southbound)
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
    try:
        async with open_access(settings_file) as at:
            clients = connected_gateways(await _read_views(at))
    except EdgeError:
        clients = {}
    return {name: asking.with_clients(result, clients.get(name, ())) for name, result in results.items()}
