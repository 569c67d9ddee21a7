"""Shows the history of a run as rows or a Gantt chart; replays stored runs and compares the decisions."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click
from rich.table import Table
from rich.text import Text as RichText

from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import CommandOutput, StoreAccess, store_command
from edge.cli.terminal.table import plain_table
from edge.drawing.gantt import gantt_svg
from edge.drawing.marks import SYMBOLS
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.instant import local
from edge.foundation.text import Text
from edge.model.instant import utc
from edge.sfc.history import Changes
from edge.sfc.replay import Difference, timeline
from edge.sfc.signal import Mirrors, Phase
from edge.station.public_history import public_changes, signal_text
from edge.station.stored_job import JobReplay, NotRecorded, RecordedRun, load_recorded, replay_recorded
from edge.store.jobs import load_all
from edge.store.reads import load_scopes


async def read_recorded(at: StoreAccess, job_id: str) -> RecordedRun:
    """Read the history of a job; raises Refused when there is none."""
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
            RichText(printable("; ".join((str(signal_text(record.signal)), *_mirrors(record.mirrors))))),
            RichText(printable(changes_text(record.changes))),
        )
    return table


def missing_text(recorded: RecordedRun) -> str:
    """Return which decisions the history no longer keeps; nothing when it is whole."""
    first = recorded.records[0].number
    return f"decisions 1 to {first - 1} are no longer kept: see [retention] decisions" if first > 1 else ""


def write_gantt(recorded: RecordedRun, output: Path, now: int) -> None:
    """Write the timeline of a run as an SVG picture."""
    run = recorded.stored.run
    until = now if run.ended_at is None else run.ended_at
    document = gantt_svg(f"job {run.job_id}: {run.outcome.value}", recorded.net, timeline(recorded.records), until)
    try:
        output.write_text(document, encoding="utf-8")
    except OSError as error:
        message = Text.of("{output}: cannot be written: {reason}", output=output, reason=error.strerror)
        raise Unavailable(message, "Name a file where you may write.") from error


def _mirrors(mirrors: Mirrors) -> Iterator[str]:
    """Yield what a decision asked of mirrored sets: `carriers has C17`."""
    for name, copy in mirrors.items():
        stale = " (stale)" if copy.is_stale else ""
        yield from (f"{name} has {member}{stale}" for member in sorted(copy.members))
        yield from (f"{name} has not {member}{stale}" for member in sorted(copy.others or ()))


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


_MOST_SHOWN = 5
_PROGRESS_INTERVAL = 50


async def replay_last(at: StoreAccess, last: int) -> list[JobReplay | NotRecorded]:
    """Replay the jobs of a store that started last; the progress goes to standard error."""
    jobs = [job for scope in await load_scopes(at.store) for job in await load_all(at.store, scope)]
    started = sorted((job.started_at, job.job_id) for job in jobs if job.started_at is not None)[-last:]
    replays = []
    for number, (_, job_id) in enumerate(started):
        if sys.stderr.isatty() and number % _PROGRESS_INTERVAL == 0:
            print_text(f"{number} of {len(started)} jobs replayed", err=True)
        recorded = await load_recorded(at.store, job_id)
        replays.append(recorded if isinstance(recorded, NotRecorded) else replay_recorded(recorded))
    return replays


def replay_text(result: JobReplay) -> Iterator[str]:
    """Yield the result of a replay as text, line by line."""
    job = printable(result.job_id)
    if result.is_same:
        yield f"{job}: all {result.decisions} decisions are the same"
        return
    yield f"{job}: {len(result.differences)} of {result.decisions} decisions differ"
    for difference in result.differences[:_MOST_SHOWN]:
        record = difference.record
        yield f"  decision {record.number}, {printable(str(signal_text(record.signal)))}"
        yield f"    recorded: {printable(changes_text(record.changes))}"
        repeated = f"ignored: {difference.ignored}" if difference.ignored else changes_text(difference.repeated)
        yield f"    replayed: {printable(repeated)}"
    if len(result.differences) > _MOST_SHOWN:
        yield f"  and {len(result.differences) - _MOST_SHOWN} more: --json shows all"
    if result.fields:
        yield f"  the run ends with other values of {printable(', '.join(result.fields))}"


def replay_json(result: JobReplay) -> dict[str, object]:
    """Return the result of a replay as data."""
    return {
        "job_order_id": result.job_id,
        "same": result.is_same,
        "decisions": result.decisions,
        "differences": [_difference(item) for item in result.differences],
        "fields": result.fields,
    }


def _difference(item: Difference) -> dict[str, object]:
    return {
        "number": item.record.number,
        "signal": str(signal_text(item.record.signal)),
        "recorded": public_changes(item.record.changes),
        "replayed": None if item.ignored else public_changes(item.repeated),
        "ignored": item.ignored or None,
    }


@click.command(epilog="Example: edge replay --all")
@click.option("--all", is_flag=True, required=True, expose_value=False, help="All stored jobs, or the --last of them.")
@click.option(
    "--last",
    type=click.IntRange(min=1),
    default=1000,
    show_default=True,
    metavar="N",
    help="The N jobs that were started last.",
)
@store_command
async def replay(at: StoreAccess, last: int) -> CommandOutput:
    """Replay stored jobs: check that this release decides as they were decided.

    The recorded signals of each job go to its recipe again, and the decisions are compared. Run it with a new release
    before an upgrade. Nothing is sent and nothing is changed. The exit status is 0 when every
    decision is the same, else 1. One job, or another recipe: `edge jobs replay`.
    """
    results = await replay_last(at, last)
    replayed = [result for result in results if isinstance(result, JobReplay)]
    missing = [result.reason for result in results if isinstance(result, NotRecorded)]
    differing = [job_replay for job_replay in replayed if not job_replay.is_same]
    lines = ["\n".join(replay_text(job_replay)) for job_replay in differing]
    lines += (f"not replayed: {reason}" for reason in missing)
    decisions = sum(job_replay.decisions for job_replay in replayed)
    lines.append(f"jobs replayed: {len(replayed)}, decisions: {decisions}, jobs that differ: {len(differing)}")
    differences = [replay_json(job_replay) for job_replay in differing]
    data = {"replayed": len(replayed), "not_recorded": missing, "differing": differences}
    return CommandOutput(data, "\n".join(lines), is_failed=bool(differing))
