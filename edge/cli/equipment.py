"""`edge equipment`: lists equipment with its state, pings it, and releases its open stops."""

import asyncio
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import click
from msgspec import Struct
from rich.table import Table
from rich.text import Text

from edge.access.instances import GatewayReport, load_reports
from edge.app.features import declared_sections, equipment_kinds
from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import operator_name, recorded
from edge.cli.terminal.output import print_json, print_text, printable, usage_failure, wrapped
from edge.cli.terminal.store_access import SOURCE, json_option, log_to_stderr, open_access, settings_option
from edge.cli.terminal.table import local_time, open_console, plain_table, utc_time
from edge.config import load_settings
from edge.equipment import ping as asking
from edge.equipment.ping import PingResult
from edge.foundation.errors import EdgeError, Refused
from edge.foundation.task_group import TaskGroup
from edge.model.equipment_connection import ConnectionState
from edge.model.equipment_health import EquipmentHealth, OpenSafing
from edge.model.isa95 import ReleasedStop
from edge.station.intervene import ReleaseRequest
from edge.station.intervene import release as release_open
from edge.station.safing_tries import problem_of

_STYLES = {"yes": "green", "no": "bold red", "gateway away": "magenta"}


class EquipmentView(Struct, frozen=True):
    """One piece of equipment as reported by a gateway at an instant; `at_work` is whether that gateway runs."""

    gateway: str
    at_work: bool
    at: int
    health: EquipmentHealth


def equipment_views(reports: Mapping[str, GatewayReport]) -> list[EquipmentView]:
    """Return all equipment in the reports of the gateways."""
    return [
        EquipmentView(gateway, gateway_report.at_work, gateway_report.report.at, health)
        for gateway, gateway_report in reports.items()
        if gateway_report.report
        for health in gateway_report.report.equipment
    ]


def connected_gateways(views: Iterable[EquipmentView]) -> dict[str, list[str]]:
    """Return the gateways at work that are connected to equipment, by the name of the equipment."""
    found: dict[str, list[str]] = {}
    for view in views:
        if view.at_work and view.health.connected:
            found.setdefault(view.health.name, []).append(f"gateway {view.gateway}")
    return found


def as_data(equipment_view: EquipmentView) -> dict[str, object]:
    """Return the view as data; instants in UTC."""
    health = equipment_view.health
    return {
        "name": health.name,
        "kind": health.kind,
        "gateway": equipment_view.gateway,
        "gateway_at_work": equipment_view.at_work,
        "at": utc_time(equipment_view.at),
        "connected": health.connected,
        "connection": _connection_data(health.connection),
        "last_seen": utc_time(health.last_seen),
        "outstanding": health.outstanding,
        "answered": health.answered,
        "failed": health.failed,
        "ignored": health.ignored,
        "refused": health.refused,
        "ok": health.ok,
        "not_ok": health.not_ok,
        "unknown": health.unknown,
        "late": health.late,
        "unsolicited": health.unsolicited,
        "repeated_starts": health.repeated_starts,
        "declined_stops": health.declined_stops,
        "lost_traces": health.lost_traces,
        "open_stops": health.safing,
        "unconfirmed": [
            {
                "what": unconfirmed.what,
                "command": unconfirmed.command_id or None,
                "since": utc_time(unconfirmed.since),
                "tries": unconfirmed.tries,
                "reason": unconfirmed.reason or None,
            }
            for unconfirmed in health.open_safing
        ],
        "problem": health.problem or None,
        "last_error": health.last_error or None,
        "last_late": {"at": utc_time(health.last_late_at), "reason": health.last_late} if health.last_late else None,
        "programs": list(health.programs),
    }


def table(found: Iterable[EquipmentView]) -> Table:
    """Return equipment as a table, one per row."""
    columns: tuple[str, ...] = ("name", "kind", "gateway", "connected", "last seen", "open commands", "open stops")
    columns += ("failed", "refused", "problem")
    shown = plain_table(
        *columns, drop=("refused", "gateway", "failed", "last seen", "open commands", "kind", "open stops")
    )
    for item in found:
        health, connected = item.health, _connected(item)
        shown.add_row(
            Text(health.name, style="bold"),
            Text(health.kind),
            Text(item.gateway),
            Text(connected, style=_STYLES.get(connected, "")),
            Text(local_time(health.last_seen)),
            Text(str(health.outstanding)),
            Text(str(health.safing), style="bold red" if health.safing else ""),
            *(Text(str(count)) for count in (health.failed, health.refused)),
            Text(printable(_trouble(health)), style="red"),
        )
    return shown


def _trouble(health: EquipmentHealth) -> str:
    """Return why it cannot work now, first that its tool may still be active; else its last error."""
    unsafe = problem_of(health.open_safing)
    if unsafe and unsafe not in health.obstacle:
        return f"{unsafe}; {health.obstacle}"
    return health.obstacle or (health.last_error and f"last error: {health.last_error}")


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
        "problem": health.problem or "none",
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
    facts["not connected"] = equipment_view.health.obstacle.removeprefix("not connected").removeprefix(": ") or unknown
    return facts | ({"next try": f"within {state.retry_s:g} s"} if state.retry_s else {})


def _connection_data(state: ConnectionState) -> dict[str, object]:
    return {
        "since": utc_time(state.since),
        "fault": state.fault or None,
        "reason": state.reason or None,
        "retry_within_s": state.retry_s,
        "holder": state.holder or None,
    }


def ping_data(name: str, result: PingResult) -> dict[str, object]:
    """Return a ping result as data; times in milliseconds."""
    milliseconds = None if result.seconds is None else round(result.seconds * 1000, 3)
    return {"name": name, "answers": result.answers, "milliseconds": milliseconds, "said": result.detail}


def ping_table(results: Mapping[str, PingResult]) -> Table:
    """Return ping results as a table, one per row."""
    shown = plain_table("name", "answers", "time", "detail")
    for name, result in results.items():
        answers = _yes_or_no(result.answers)
        took = "" if result.seconds is None else f"{result.seconds * 1000:.1f} ms"
        shown.add_row(
            Text(name, style="bold"),
            Text(answers, style=_STYLES.get(answers, "")),
            Text(took),
            Text(printable(result.detail)),
        )
    return shown


def _connected(equipment_view: EquipmentView) -> str:
    if holder := equipment_view.health.connection.holder:
        return f"by {printable(holder)}" if equipment_view.at_work else "gateway away"
    return _yes_or_no(equipment_view.health.connected) if equipment_view.at_work else "gateway away"


def _yes_or_no(value: bool | None) -> str:  # noqa: FBT001 - the value itself
    return "unknown" if value is None else "yes" if value else "no"


async def release_stops(
    settings_file: Path | None, name: str, command_id: str | None, reason: str
) -> Sequence[ReleasedStop]:
    """Release the open stops and resets of equipment, all or those of one command; return them."""
    async with open_access(settings_file) as at:
        if name not in at.settings.southbound:
            usage_failure(f"the settings have no [southbound.{name}]")
        equipment = {name: at.settings.southbound[name].type_ids}
        request = ReleaseRequest(
            equipment=name,
            scopes=at.settings.gateway.scopes,
            command_id=command_id,
            by=operator_name(),
            reason=reason,
            source=SOURCE,
            event_id=str(uuid.uuid4()),
        )
        async with recorded(at, "equipment release", command_id or name, reason):
            return await release_open(at.store, equipment, request, at.settings.retention.dedupe * 1000)


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
