"""Shows the history of a run: a row for each decision, as data, or as a Gantt chart."""

from collections.abc import Iterator
from pathlib import Path

from rich.table import Table
from rich.text import Text

from edge.chart.gantt import gantt_svg
from edge.chart.marks import SYMBOLS
from edge.cli.terminal.fitted_table import plain_table, utc_time
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import open_access
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import local
from edge.model.instant import utc
from edge.sfc.changes import Changes
from edge.sfc.history import DecisionRecord
from edge.sfc.mirror_copy import Mirrors
from edge.sfc.run import Sending
from edge.sfc.signal import (
    Abort,
    Answer,
    Begun,
    Event,
    Granted,
    Intervene,
    Late,
    Pause,
    Phase,
    Resolve,
    Resume,
    Signal,
    Start,
    Stop,
    Tick,
    Unknown,
    Withdrawn,
)
from edge.sfc.timeline import timeline
from edge.station.run_replay import NotRecorded, RecordedRun, load_recorded


async def read_recorded(settings_file: Path | None, job_id: str) -> RecordedRun:
    """Read the history of a job; raises Refused when there is none."""
    async with open_access(settings_file) as at:
        found = await load_recorded(at.store, job_id)
    if isinstance(found, NotRecorded):
        raise Refused("no_history", found.reason, "Find jobs: edge jobs list")
    return found


def history_table(recorded: RecordedRun) -> Table:
    """Return the decisions as a table: local time, time since the first one, signal, changes."""
    table = plain_table("time", "after", "signal", "changes")
    begin = recorded.records[0].at
    for record in recorded.records:
        at = local(utc(record.at))
        table.add_row(
            f"{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03}",
            f"{(record.at - begin) / 1000:.3f} s",
            Text(printable("; ".join((signal_text(record.signal), *_mirrors(record.mirrors))))),
            Text(printable(changes_text(record.changes))),
        )
    return table


def missing_text(recorded: RecordedRun) -> str:
    """Return which decisions the history no longer keeps; nothing when it is whole."""
    first = recorded.records[0].number
    return f"decisions 1 to {first - 1} are no longer kept: see [retention] decisions" if first > 1 else ""


def history_json(recorded: RecordedRun) -> dict[str, object]:
    """Return the decisions as data; instants in UTC."""
    run = recorded.stored.run
    return {
        "job_order_id": run.job_id,
        "scope": run.scope,
        "decisions": [_as_json(record) for record in recorded.records],
    }


def write_gantt(recorded: RecordedRun, output: Path, now: int) -> None:
    """Write the timeline of a run as an SVG picture."""
    run = recorded.stored.run
    until = now if run.ended_at is None else run.ended_at
    document = gantt_svg(f"job {run.job_id}: {run.outcome.value}", recorded.net, timeline(recorded.records), until)
    try:
        output.write_text(document, encoding="utf-8")
    except OSError as error:
        message = f"{output}: cannot be written: {error.strerror}"
        raise Unavailable(message, "Name a file where you may write.") from error


def signal_text(signal: Signal) -> str:
    """Return a signal as text for people."""
    match signal:
        case Start() | Tick() | Pause() | Resume():
            return type(signal).__name__.lower()
        case Answer(command_id, ok=ok, error=error):
            return f"answer to {_attempt(command_id)}: {'done' if ok else f'failed: {error}' if error else 'failed'}"
        case Unknown(command_id, reason):
            return f"unknown outcome of {_attempt(command_id)}: {reason}"
        case Begun(command_id):
            return f"begun {_attempt(command_id)}"
        case Withdrawn(command_id, reason, may_have_left):
            sending = Sending.MAYBE if may_have_left else Sending.NEVER
            return f"{_attempt(command_id)} {sending}{f': {reason}' if reason else ''}"
        case Resolve() | Intervene():
            return str(signal)
        case Late(command_id):
            return f"late result of {_attempt(command_id)}"
        case Event(type_id):
            return f"event {type_id}"
        case Granted(locks):
            return f"lock {', '.join(locks)} granted"
        case Abort(reason) | Stop(reason):
            word = type(signal).__name__.lower()
            return f"{word}: {reason}" if reason else word


def _mirrors(mirrors: Mirrors) -> Iterator[str]:
    """Yield what a decision asked of mirrored sets: `carriers has C17`."""
    for name, copy in mirrors.items():
        stale = " (stale)" if copy.is_stale else ""
        yield from (f"{name} has {member}{stale}" for member in sorted(copy.members))
        yield from (f"{name} has not {member}{stale}" for member in sorted(copy.others or ()))


def _attempt(command_id: str) -> str:
    """Return action and attempt of a command id, with `reset` for a reset."""
    return " ".join(command_id.split("/")[2:])


def changes_text(changes: Changes) -> str:
    """Return changes as text for people."""
    return ", ".join(_changes(changes)) or "none"


def _changes(changes: Changes) -> Iterator[str]:
    for action in changes.actions:
        yield (
            f"{action.key.action} {SYMBOLS[action.state]} {action.state.value}"
            if action.state
            else f"{action.key.action} over"
        )
    for command in changes.commands:
        if command.phase is not Phase.START:
            yield f"{command.phase.value} {command.action}"
    for step, active in changes.steps:
        yield f"{'→' if active else '←'} {step}"


def _as_json(record: DecisionRecord) -> dict[str, object]:
    return {
        "number": record.number,
        "at": utc_time(record.at),
        "signal": type(record.signal).__name__.lower(),
        "text": signal_text(record.signal),
        "members": record.signal,
        "mirrors": {
            name: {"members": sorted(copy.members), "others": sorted(copy.others or ()), "stale": copy.is_stale}
            for name, copy in record.mirrors.items()
        },
        "changes": changes_json(record.changes),
    }


def changes_json(changes: Changes) -> dict[str, object]:
    """Return changes as data."""
    return {
        "actions": [
            {
                "step": action_change.key.step,
                "action": action_change.key.action,
                "attempt": action_change.key.attempt or None,
                "state": action_change.state,
            }
            for action_change in changes.actions
        ],
        "commands": [
            {"phase": command.phase, "step": command.step, "action": command.action} for command in changes.commands
        ],
        "steps": [{"step": step, "active": active} for step, active in changes.steps],
    }
