"""Equipment as a line of a list, whole for people, and for programs."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from edge.cli.job_view import clock_time, instant, plain_table
from edge.cli.terminal import printable
from edge.maintenance.ping import PingResult
from edge.model.equipment_health import EquipmentHealth
from edge.store.health_reports import GatewayReport

_STYLES = {"yes": "green", "no": "bold red", "gateway away": "magenta"}


@dataclass(frozen=True, slots=True)
class Seen:
    """A piece of equipment, as a gateway saw it at an instant; `at_work` tells whether that gateway still is."""

    gateway: str
    at_work: bool
    at: int
    health: EquipmentHealth


def seen(told: Mapping[str, GatewayReport]) -> list[Seen]:
    """Give all equipment that gateways have told of."""
    return [
        Seen(gateway, each.at_work, each.report.at, health)
        for gateway, each in told.items()
        if each.report
        for health in each.report.equipment
    ]


def as_data(each: Seen) -> dict[str, object]:
    """Give it for a program; instants in UTC."""
    health = each.health
    return {
        "name": health.name,
        "kind": health.kind,
        "gateway": each.gateway,
        "gateway_at_work": each.at_work,
        "at": instant(each.at),
        "connected": health.connected,
        "last_seen": instant(health.last_seen),
        "outstanding": health.outstanding,
        "answered": health.answered,
        "failed": health.failed,
        "ignored": health.ignored,
        "refused": health.refused,
        "last_error": health.last_error or None,
    }


def table(found: Iterable[Seen]) -> Table:
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
            Text(clock_time(health.last_seen)),
            *(Text(str(count)) for count in (health.outstanding, health.failed, health.refused)),
            Text(printable(health.last_error), style="red"),
        )
    return shown


def report(each: Seen) -> Iterator[str]:
    """Give all of it, line by line."""
    health = each.health
    told = {
        "equipment": health.name,
        "kind": health.kind,
        "gateway": each.gateway if each.at_work else f"{each.gateway}, which does not run now",
        "as of": clock_time(each.at),
        "connected": _connected(each),
        "last seen": clock_time(health.last_seen) or "not since the gateway started",
        "outstanding": f"{health.outstanding} commands wait for an answer",
        "answered": f"{health.answered} commands, {health.failed} of them failed",
        "ignored": f"{health.ignored} answers that came late or again, events that nobody waited for",
        "refused": f"{health.refused} messages that could not be taken",
        "last error": health.last_error or "none",
    }
    width = max(map(len, told))
    for name, text in told.items():
        yield f"{name:<{width}}  {printable(text)}"


def pong_data(name: str, pong: PingResult) -> dict[str, object]:
    """Give what came back for a program; times in milliseconds."""
    milliseconds = None if pong.seconds is None else round(pong.seconds * 1000, 3)
    return {"name": name, "answers": pong.answers, "milliseconds": milliseconds, "said": pong.said}


def pong_table(pongs: Mapping[str, PingResult]) -> Table:
    """Give what came back as a list, one a line."""
    shown = plain_table("name", "answers", "took", "said")
    for name, pong in pongs.items():
        answers = _yes_or_no(pong.answers)
        took = "" if pong.seconds is None else f"{pong.seconds * 1000:.1f} ms"
        shown.add_row(
            Text(name, style="bold"),
            Text(answers, style=_STYLES.get(answers, "")),
            Text(took),
            Text(printable(pong.said)),
        )
    return shown


def _connected(each: Seen) -> str:
    return _yes_or_no(each.health.connected) if each.at_work else "gateway away"


def _yes_or_no(value: bool | None) -> str:  # noqa: FBT001 - the value itself
    return "not said" if value is None else "yes" if value else "no"
