"""Formats alarms: as a table, and as a report of one alarm."""

from collections.abc import Iterable, Iterator

import msgspec
from rich.table import Table
from rich.text import Text

from edge.cli.terminal.output import printable
from edge.cli.terminal.table import local_time, plain_table
from edge.ports.alarm import Alarm, public_alarm, public_alarm_change
from edge.store.kept_alarms import AlarmChange

_MESSAGES = frozenset({"message", "messages"})


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
        at, by = local_time(alarm.changed_at), public_alarm_change(alarm, change.kind).by
        cells = (at, change.kind.value, alarm.id[:8], alarm.severity, alarm.rule, alarm.subject, by, _text(alarm))
        _add_row(found, *cells)
    return found


def report(alarm: Alarm) -> Iterator[str]:
    """Yield the report of an alarm, line by line."""
    members = msgspec.structs.asdict(public_alarm(alarm)).items()
    facts = {name: value for name, value in members if name not in _MESSAGES and value not in (None, "", ())}
    facts |= {f"message ({language})": text for language, text in alarm.message.items()}
    width = max(map(len, facts))
    for name, value in facts.items():
        yield f"{printable(name):<{width}}  {printable(value)}"


def _text(alarm: Alarm) -> str:
    return public_alarm(alarm).message


def _add_row(table_: Table, *cells: object) -> None:
    table_.add_row(*(Text(printable(cell)) for cell in cells))
