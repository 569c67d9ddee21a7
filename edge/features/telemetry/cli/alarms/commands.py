"""`edge alarms`: shows alarms, and acknowledges, confirms, resets, shelves and disables them."""

import asyncio
import getpass
from pathlib import Path

import click

from edge.cli.terminal.command_group import CommandGroup
from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import print_json, print_text
from edge.cli.terminal.store_access import json_option, open_access, settings_option
from edge.cli.terminal.table import open_console
from edge.features.telemetry.alarm_requests import alarm_event_of, request_change
from edge.features.telemetry.cli.alarms.view import changes_table, report, table
from edge.foundation.errors import Refused
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.ports.alarm import Alarm, AlarmCall, public_alarm, public_alarm_change
from edge.store.client import Store
from edge.store.kept_alarms import AlarmChange, load, newest

_by_option = click.option("--by", help="Name of the person.  [default: the user of this terminal]")
_comment_option = click.option("--comment", default="", help="Remark that is kept with the alarm.")


@click.group(cls=CommandGroup)
def alarms() -> None:
    """Show alarms; acknowledge, confirm, reset, shelve or disable them.

    These commands work on the store of the settings, also while no gateway runs. ALARM is the id of an alarm or the
    beginning of it. The exit status is 0 on success, 1 when the request is refused or the store is unavailable, and 2
    when settings or arguments are invalid.
    """


@alarms.command("list", epilog="Example: edge alarms list")
@settings_option
@json_option
def list_(settings_file: Path | None, *, as_json: bool) -> None:
    """List the alarms that are not normal, or are silenced; the most severe first."""

    async def read() -> list[Alarm]:
        async with open_access(settings_file) as at:
            return list((await load(at.store)).alarms.values())

    found = sorted(asyncio.run(read()), key=lambda alarm: (-alarm.severity, alarm.raised_at or 0, alarm.id))
    if as_json:
        print_json([public_alarm(alarm) for alarm in found])
    elif found:
        open_console().print(table(found))
    else:
        print_text("no alarms")


@alarms.command(epilog="Example: edge alarms show 3f9a")
@click.argument("alarm")
@settings_option
@json_option
def show(alarm: str, settings_file: Path | None, *, as_json: bool) -> None:
    """Show an alarm with all that is known of it."""

    async def read() -> Alarm:
        async with open_access(settings_file) as at:
            return await _find(at.store, alarm)

    found = asyncio.run(read())
    if as_json:
        print_json(public_alarm(found))
    else:
        print_text("\n".join(report(found)))


@alarms.command(epilog="Example: edge alarms history --count 20")
@click.option("--count", type=click.IntRange(1, 10_000), default=50, show_default=True, help="Number of changes.")
@settings_option
@json_option
def history(count: int, settings_file: Path | None, *, as_json: bool) -> None:
    """List the newest changes of alarms, the oldest of them first."""

    async def read() -> list[AlarmChange]:
        async with open_access(settings_file) as at:
            return await newest(at.store, count)

    found = asyncio.run(read())
    if as_json:
        print_json([public_alarm_change(alarm_change.alarm, alarm_change.kind) for alarm_change in found])
    elif found:
        open_console().print(changes_table(found))
    else:
        print_text("no changes")


@alarms.command(epilog='Example: edge alarms ack 3f9a --comment "fan replaced"')
@click.argument("alarm")
@_by_option
@_comment_option
@settings_option
def ack(alarm: str, by: str | None, comment: str, settings_file: Path | None) -> None:
    """Acknowledge an alarm: a person has seen it."""
    _request("Acknowledge", alarm, by, comment, settings_file)


@alarms.command(epilog="Example: edge alarms confirm 3f9a")
@click.argument("alarm")
@_by_option
@_comment_option
@settings_option
def confirm(alarm: str, by: str | None, comment: str, settings_file: Path | None) -> None:
    """Confirm an acknowledged alarm: a person has acted."""
    _request("Confirm", alarm, by, comment, settings_file)


@alarms.command(epilog='Example: edge alarms comment 3f9a "spare part ordered"')
@click.argument("alarm")
@click.argument("comment")
@_by_option
@settings_option
def comment(alarm: str, comment: str, by: str | None, settings_file: Path | None) -> None:
    """Add a comment to an alarm."""
    _request("AddComment", alarm, by, comment, settings_file)


@alarms.command(epilog="Example: edge alarms reset 3f9a")
@click.argument("alarm")
@_by_option
@_comment_option
@settings_option
def reset(alarm: str, by: str | None, comment: str, settings_file: Path | None) -> None:
    """Reset a latched alarm whose condition has ended."""
    _request("Reset", alarm, by, comment, settings_file)


@alarms.command(epilog="Example: edge alarms shelve 3f9a --minutes 30")
@click.argument("alarm")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), help="Length.  [default: until it clears]")
@_by_option
@_comment_option
@settings_option
def shelve(alarm: str, minutes: float | None, by: str | None, comment: str, settings_file: Path | None) -> None:
    """Shelve an alarm: it is silent for a time, or until its condition ends."""
    _request("Shelve", alarm, by, comment, settings_file, None if minutes is None else minutes * 60)


@alarms.command(epilog="Example: edge alarms unshelve 3f9a")
@click.argument("alarm")
@_by_option
@_comment_option
@settings_option
def unshelve(alarm: str, by: str | None, comment: str, settings_file: Path | None) -> None:
    """End the shelving of an alarm."""
    _request("Unshelve", alarm, by, comment, settings_file)


@alarms.command(epilog='Example: edge alarms disable 3f9a --comment "sensor is being replaced"')
@click.argument("alarm")
@_by_option
@_comment_option
@settings_option
def disable(alarm: str, by: str | None, comment: str, settings_file: Path | None) -> None:
    """Disable an alarm: it is not raised until it is enabled again."""
    _request("Disable", alarm, by, comment, settings_file)


@alarms.command(epilog="Example: edge alarms enable 3f9a")
@click.argument("alarm")
@_by_option
@_comment_option
@settings_option
def enable(alarm: str, by: str | None, comment: str, settings_file: Path | None) -> None:
    """Put an alarm into service again."""
    _request("Enable", alarm, by, comment, settings_file)


def _request(
    method: str, alarm: str, by: str | None, comment: str, settings_file: Path | None, seconds: float | None = None
) -> None:
    """Apply the method of a person to an alarm and print its state."""

    async def do(call: AlarmCall) -> str:

        async with open_access(settings_file) as at:
            found = await _find(at.store, alarm)
            event = alarm_event_of(method, call, now_ms())
            async with recorded(at, f"alarms {method}", found.id, call.comment):
                notice = await request_change(at.store, found.id, event, now_ms)
            return f"{found.id}: {notice.change.value}, now {notice.state}"

    print_text(asyncio.run(do(AlarmCall(alarm_id=alarm, by=by or getpass.getuser(), comment=comment, seconds=seconds))))


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
