"""`edge alarms`: shows alarms, and acknowledges, confirms, resets, shelves and disables them."""

import getpass
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Any, Concatenate

import click
import msgspec
from rich.table import Table
from rich.text import Text as RichText

from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import CommandOutput, StoreAccess, store_action, store_command
from edge.cli.terminal.table import local_time, plain_table, wide_option
from edge.features.telemetry.alarm_requests import alarm_event_of, request_change
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.ports.alarm import Alarm, AlarmCall, public_alarm, public_alarm_change
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange, load, newest

_MESSAGES = frozenset({"message", "messages"})


def table(alarms: Iterable[Alarm]) -> Table:
    """Return alarms as a table."""
    columns = ("alarm", "severity", "state", "raised", "rule", "subject", "job", "message")
    fitted_table = plain_table(*columns, drop=("rule", "severity", "raised", "subject", "job"), empty="no alarms")
    for alarm in alarms:
        _add_row(
            fitted_table,
            alarm.id[:8],
            alarm.severity,
            alarm.state.value,
            local_time(alarm.raised_at),
            alarm.rule,
            alarm.subject,
            alarm.job or "",
            _text(alarm),
        )
    return fitted_table


def changes_table(changes: Iterable[AlarmChange]) -> Table:
    """Return changes of alarms as a table."""
    fitted_table = plain_table(
        "at", "change", "alarm", "severity", "rule", "subject", "by", "message", empty="no changes"
    )
    for change in changes:
        alarm = change.alarm
        at, by = local_time(alarm.changed_at), public_alarm_change(alarm, change.kind).by
        cells = (at, change.kind.value, alarm.id[:8], alarm.severity, alarm.rule, alarm.subject, by, _text(alarm))
        _add_row(fitted_table, *cells)
    return fitted_table


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
    table_.add_row(*(RichText(printable(cell)) for cell in cells))


@click.group(cls=CommandGroup)
def alarms() -> None:
    """Show alarms; acknowledge, confirm, reset, shelve or disable them.

    These commands work on the store of the settings, also while no gateway runs. ALARM is the id of an alarm or the
    beginning of it. The exit status is 0 on success, 1 when the request is refused or the store is unavailable, and 2
    when settings or arguments are invalid.
    """


@alarms.command("list", epilog="Example: edge alarms list")
@wide_option
@store_command
async def list_(at: StoreAccess) -> CommandOutput:
    """List the alarms that are not normal, or are silenced; the most severe first."""
    values_view = (await load(at.store)).alarms.values()
    alarms = sorted(values_view, key=lambda alarm: (-alarm.severity, alarm.raised_at or 0, alarm.id))
    return CommandOutput([public_alarm(alarm) for alarm in alarms], table(alarms))


@alarms.command(epilog="Example: edge alarms show 3f9a")
@click.argument("alarm")
@store_command
async def show(at: StoreAccess, alarm: str) -> CommandOutput:
    """Show an alarm with all that is known of it."""
    stored = await _find(at.store, alarm)
    return CommandOutput(public_alarm(stored), "\n".join(report(stored)))


@alarms.command(epilog="Example: edge alarms history --count 20")
@click.option("--count", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Number of changes.")
@wide_option
@store_command
async def history(at: StoreAccess, count: int) -> CommandOutput:
    """List the newest changes of alarms, the oldest of them first."""
    changes = await newest(at.store, count)
    data = [public_alarm_change(change.alarm, change.kind) for change in changes]
    return CommandOutput(data, changes_table(changes))


_by_option = click.option("--by", help="Name of the person.  [default: the user of this terminal]")


def _on_alarm(work: Callable[Concatenate[StoreAccess, ...], Awaitable[str]]) -> Callable[..., None]:
    """Build a command by which a person changes an alarm, its argument; person and remark are options."""
    remark = click.option("--comment", default="", help="Remark that is kept with the alarm.")
    return click.argument("alarm")(_by_option(remark(store_action(work))))


@alarms.command(epilog='Example: edge alarms ack 3f9a --comment "fan replaced"')
@_on_alarm
async def ack(at: StoreAccess, **call: Any) -> str:
    """Acknowledge an alarm: a person has seen it."""
    return await _request(at, "Acknowledge", **call)


@alarms.command(epilog="Example: edge alarms confirm 3f9a")
@_on_alarm
async def confirm(at: StoreAccess, **call: Any) -> str:
    """Confirm an acknowledged alarm: a person has acted."""
    return await _request(at, "Confirm", **call)


@alarms.command(epilog='Example: edge alarms comment 3f9a "spare part ordered"')
@click.argument("alarm")
@click.argument("comment")
@_by_option
@store_action
async def comment(at: StoreAccess, **call: Any) -> str:
    """Add a comment to an alarm."""
    return await _request(at, "AddComment", **call)


@alarms.command(epilog="Example: edge alarms reset 3f9a")
@_on_alarm
async def reset(at: StoreAccess, **call: Any) -> str:
    """Reset a latched alarm whose condition has ended."""
    return await _request(at, "Reset", **call)


@alarms.command(epilog="Example: edge alarms shelve 3f9a --minutes 30")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Length.  [default: until it clears]")
@_on_alarm
async def shelve(at: StoreAccess, minutes: float | None, **call: Any) -> str:
    """Shelve an alarm: it is silent for a time, or until its condition ends."""
    return await _request(at, "Shelve", **call, seconds=None if minutes is None else minutes * 60)


@alarms.command(epilog="Example: edge alarms unshelve 3f9a")
@_on_alarm
async def unshelve(at: StoreAccess, **call: Any) -> str:
    """End the shelving of an alarm."""
    return await _request(at, "Unshelve", **call)


@alarms.command(epilog='Example: edge alarms disable 3f9a --comment "sensor is being replaced"')
@_on_alarm
async def disable(at: StoreAccess, **call: Any) -> str:
    """Disable an alarm: it is not raised until it is enabled again."""
    return await _request(at, "Disable", **call)


@alarms.command(epilog="Example: edge alarms enable 3f9a")
@_on_alarm
async def enable(at: StoreAccess, **call: Any) -> str:
    """Put an alarm into service again."""
    return await _request(at, "Enable", **call)


async def _request(
    at: StoreAccess, method: str, alarm: str, by: str | None, comment: str, seconds: float | None = None
) -> str:
    """Apply the method of a person to an alarm and return its state."""
    stored = await _find(at.store, alarm)
    call = AlarmCall(alarm_id=alarm, by=by or getpass.getuser(), comment=comment, seconds=seconds)
    async with recorded(at, f"alarms {method}", stored.id, comment):
        notice = await request_change(at.store, stored.id, alarm_event_of(method, call, now_ms()), now_ms)
    return f"{stored.id}: {notice.change.value}, now {notice.state}"


async def _find(store: Store, name: str) -> Alarm:
    """Return the alarm whose id begins with a text. Raises Refused for none, and for several."""
    found = [alarm for alarm in (await load(store)).alarms.values() if alarm.id.startswith(name)]
    if len(found) != 1:
        reason = (
            Text.of("{count} alarms begin with {name!r}", count=len(found), name=name)
            if found
            else Text.of("there is no alarm {name!r}", name=name)
        )
        raise Refused("unknown_alarm", reason, "List the alarms: edge alarms list")
    return found[0]
