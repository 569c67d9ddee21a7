"""Formats alarms: as a table, as a report of one alarm, and as data."""

from collections.abc import Iterable, Iterator
from typing import Final

from rich.table import Table
from rich.text import Text

from edge.cli.terminal.output import printable
from edge.cli.terminal.table import local_time, plain_table
from edge.model.instant import rfc3339
from edge.ports.alarm import Alarm, AlarmChangeKind
from edge.store.kept_alarms import AlarmChange

_KINDS_WITHOUT_PERSON: Final = frozenset(
    {
        AlarmChangeKind.RAISED,
        AlarmChangeKind.ESCALATED,
        AlarmChangeKind.EASED,
        AlarmChangeKind.CLEARED,
        AlarmChangeKind.SUPPRESSED,
        AlarmChangeKind.UNSUPPRESSED,
    }
)


def as_data(alarm: Alarm) -> dict[str, object]:
    """Return an alarm as data; instants in UTC."""
    return {
        "id": alarm.id,
        "rule": alarm.rule,
        "subject": alarm.subject,
        "state": alarm.state,
        "active": alarm.active,
        "acknowledgement": alarm.acknowledgement,
        "severity": alarm.severity,
        "message": alarm.message,
        "value": alarm.value,
        "job": alarm.job,
        "count": alarm.count,
        "raised_at": rfc3339(alarm.raised_at),
        "cleared_at": rfc3339(alarm.cleared_at),
        "changed_at": rfc3339(alarm.changed_at),
        "by": alarm.by,
        "comment": alarm.comment,
        "shelved_until": rfc3339(alarm.shelving.until) if alarm.shelving else None,
        "suppressed": alarm.suppressed,
        "disabled": alarm.disabled,
        "unacknowledged_before": [rfc3339(earlier_raise.raised_at) for earlier_raise in alarm.earlier],
    }


def change_as_data(change: AlarmChange) -> dict[str, object]:
    """Return a change as data: the alarm after it, and who made it."""
    return as_data(change.alarm) | {"change": change.kind, "by": _author(change)}


def table(alarms: Iterable[Alarm]) -> Table:
    """Return alarms as a table."""
    columns = ("alarm", "severity", "state", "raised", "rule", "subject", "job", "message")
    found = plain_table(*columns, drop=("rule", "severity", "raised", "subject", "job"))
    for alarm in alarms:
        _add_row(
            found,
            alarm.id[:8],
            alarm.severity,
            alarm.state.value,
            local_time(alarm.raised_at),
            alarm.rule,
            alarm.subject,
            alarm.job or "",
            _text(alarm),
        )
    return found


def changes_table(changes: Iterable[AlarmChange]) -> Table:
    """Return changes of alarms as a table."""
    found = plain_table("at", "change", "alarm", "severity", "rule", "subject", "by", "message")
    for change in changes:
        alarm = change.alarm
        at, by = local_time(alarm.changed_at), _author(change)
        cells = (at, change.kind.value, alarm.id[:8], alarm.severity, alarm.rule, alarm.subject, by, _text(alarm))
        _add_row(found, *cells)
    return found


def report(alarm: Alarm) -> Iterator[str]:
    """Yield the report of an alarm, line by line."""
    known = ((name, value) for name, value in as_data(alarm).items() if name != "message")
    facts = {name: value for name, value in known if value not in (None, "", [])}
    facts |= {f"message ({language})": text for language, text in alarm.message.items()}
    width = max(map(len, facts))
    for name, value in facts.items():
        yield f"{printable(name):<{width}}  {printable(value)}"


def _author(change: AlarmChange) -> str:
    """Return the person who made a change; empty for one of the rules or of the maintenance mode."""
    return "" if change.kind in _KINDS_WITHOUT_PERSON else change.alarm.by


def _text(alarm: Alarm) -> str:
    return alarm.message.get("en") or next(iter(alarm.message.values()), "")


def _add_row(table_: Table, *cells: object) -> None:
    table_.add_row(*(Text(printable(cell)) for cell in cells))
