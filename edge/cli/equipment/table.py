"""Formats equipment: as a table, as a report of one piece, and as data."""

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct
from rich.table import Table
from rich.text import Text

from edge.access.working_instances import GatewayReport
from edge.cli.terminal.fitted_table import local_time, plain_table, utc_time
from edge.cli.terminal.output import printable, wrapped
from edge.equipment.ping import PingResult
from edge.model.equipment_connection import ConnectionState
from edge.model.equipment_health import EquipmentHealth, OpenSafing
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
