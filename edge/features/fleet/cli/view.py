"""Formats components: as a table, as lines and as data."""

from collections.abc import Iterable, Iterator

import msgspec
from rich.table import Table

from edge.access.components import HEARTBEAT_S
from edge.cli.terminal.output import printable
from edge.cli.terminal.table import local_time, plain_table
from edge.model.instant import rfc3339
from edge.store.components import KnownComponent

_AWAY_AFTER_S = 3 * HEARTBEAT_S


def table(found: Iterable[KnownComponent], now_ms: int) -> Table:
    """Return components as a table."""
    columns = ("name", "kind", "version", "state", "up", "jobs", "alarms", "certificate until", "drift", "labels")
    shown = plain_table(*columns)
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
        shown.add_row(*map(printable, cells))
    return shown


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
        alarms = "" if component.alarms is None else f", {component.alarms} alarms"
        yield f"  {component.jobs} jobs at work{alarms}"
    if component.certificate_expiry:
        yield f"  certificates valid until {component.certificate_expiry}"
    if component.drift is not None:
        yield f"  configuration drift: {component.drift or 'none'}"
    for plugin in found.plugins:
        yield f"  {plugin.kind} {plugin.name}: {plugin.state}{f', {plugin.problem}' if plugin.problem else ''}"


def as_data(found: KnownComponent, now_ms: int) -> dict[str, object]:
    """Return a component as data; instants in UTC."""
    content: dict[str, object] = msgspec.to_builtins(found.component)
    return content | {
        "started": rfc3339(found.component.started),
        "last_seen": rfc3339(found.seen_s * 1000),
        "state": state(found, now_ms),
        "plugins": msgspec.to_builtins(found.plugins),
    }


def state(found: KnownComponent, now_ms: int) -> str:
    """Return the state of a component in a few words."""
    if _is_away(found, now_ms):
        return f"away since {local_time(found.seen_s * 1000)}"
    return found.component.problems or "healthy"


def _is_away(found: KnownComponent, now_ms: int) -> bool:
    return now_ms / 1000 - found.seen_s > _AWAY_AFTER_S or not found.token


def _uptime(found: KnownComponent, now_ms: int) -> str:
    if _is_away(found, now_ms):
        return ""
    minutes = max(0, now_ms - found.component.started) // 60_000
    days, hours = minutes // 1440, minutes // 60 % 24
    return f"{days} d {hours} h" if days else f"{hours} h {minutes % 60} min"
