"""Equipment as a line of a list, whole for people, and for programs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from edge.cli.jobs.table import local_time, plain_table, utc_time
from edge.cli.terminal.output import printable
from edge.maintenance.ping import PingResult
from edge.model.equipment_health import EquipmentHealth
from edge.store.health_reports import GatewayReport

_STYLES = {"yes": "green", "no": "bold red", "gateway away": "magenta"}


@dataclass(frozen=True, slots=True)
class EquipmentView:
    """A piece of equipment, as a gateway saw it at an instant; `at_work` tells whether that gateway still is."""

    gateway: str
    at_work: bool
    at: int
    health: EquipmentHealth


def equipment_views(told: Mapping[str, GatewayReport]) -> list[EquipmentView]:
    """Give all equipment that gateways have told of."""
    return [
        EquipmentView(gateway, each.at_work, each.report.at, health)
        for gateway, each in told.items()
        if each.report
        for health in each.report.equipment
    ]


def as_data(each: EquipmentView) -> dict[str, object]:
    """Give it for a program; instants in UTC."""
    health = each.health
    return {
        "name": health.name,
        "kind": health.kind,
        "gateway": each.gateway,
        "gateway_at_work": each.at_work,
        "at": utc_time(each.at),
        "connected": health.connected,
        "last_seen": utc_time(health.last_seen),
        "outstanding": health.outstanding,
        "answered": health.answered,
        "failed": health.failed,
        "ignored": health.ignored,
        "refused": health.refused,
        "last_error": health.last_error or None,
    }


def table(found: Iterable[EquipmentView]) -> Table:
    """Give equipment as a list, one a line."""
    columns = ("name", "kind", "gateway", "connected", "last seen", "outstanding", "failed", "refused", "last error")
    shown = plain_table(*columns)
    for each in found:
        health, connected = each.health, _connected(each)
        shown.add_row(
            Text(health.name, style="bold"),
            Text(health.kind),
            Text(each.gateway),
            Text(connected, style=_STYLES.get(connected, "")),
            Text(local_time(health.last_seen)),
            *(Text(str(count)) for count in (health.outstanding, health.failed, health.refused)),
            Text(printable(health.last_error), style="red"),
        )
    return shown


def report(each: EquipmentView) -> Iterator[str]:
    """Give all of it, line by line."""
    health = each.health
    told = {
        "equipment": health.name,
        "kind": health.kind,
        "gateway": each.gateway if each.at_work else f"{each.gateway}, which does not run now",
        "as of": local_time(each.at),
        "connected": _connected(each),
        "last seen": local_time(health.last_seen) or "not since the gateway started",
        "outstanding": f"{health.outstanding} commands wait for an answer",
        "answered": f"{health.answered} commands, {health.failed} of them failed",
        "ignored": f"{health.ignored} answers that came late or again, events that nobody waited for",
        "refused": f"{health.refused} messages that could not be taken",
        "last error": health.last_error or "none",
    }
    width = max(map(len, told))
    for name, text in told.items():
        yield f"{name:<{width}}  {printable(text)}"


def ping_data(name: str, result: PingResult) -> dict[str, object]:
    """Give what came back for a program; times in milliseconds."""
    milliseconds = None if result.seconds is None else round(result.seconds * 1000, 3)
    return {"name": name, "answers": result.answers, "milliseconds": milliseconds, "said": result.said}


def ping_table(results: Mapping[str, PingResult]) -> Table:
    """Give what came back as a list, one a line."""
    shown = plain_table("name", "answers", "took", "said")
    for name, result in results.items():
        answers = _yes_or_no(result.answers)
        took = "" if result.seconds is None else f"{result.seconds * 1000:.1f} ms"
        shown.add_row(
            Text(name, style="bold"),
            Text(answers, style=_STYLES.get(answers, "")),
            Text(took),
            Text(printable(result.said)),
        )
    return shown


def _connected(each: EquipmentView) -> str:
    return _yes_or_no(each.health.connected) if each.at_work else "gateway away"


def _yes_or_no(value: bool | None) -> str:  # noqa: FBT001 - the value itself
    return "not said" if value is None else "yes" if value else "no"
