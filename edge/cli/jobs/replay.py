"""Replays stored runs and reports where a decision differs from its record."""

import sys
from collections.abc import Iterator
from pathlib import Path

from edge.cli.jobs.run_history import changes_json, changes_text, signal_text
from edge.cli.terminal.output import print_text, printable
from edge.cli.terminal.store_access import open_access
from edge.sfc.replay import Difference
from edge.station.run_replay import JobReplay, NotRecorded, load_recorded, replay_recorded
from edge.store.bulk_reads import load_scopes
from edge.store.jobs import load_all

_MOST_SHOWN = 5
_PROGRESS_INTERVAL = 50


async def replay_last(settings_file: Path | None, last: int) -> list[JobReplay | NotRecorded]:
    """Replay the jobs of a store that started last; the progress goes to standard error."""
    async with open_access(settings_file) as at:
        found = [job for scope in await load_scopes(at.store) for job in await load_all(at.store, scope)]
        started = sorted((job.started_at, job.job_id) for job in found if job.started_at is not None)[-last:]
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
        yield f"  decision {record.number}, {printable(signal_text(record.signal))}"
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
        "signal": signal_text(item.record.signal),
        "recorded": changes_json(item.record.changes),
        "replayed": None if item.ignored else changes_json(item.repeated),
        "ignored": item.ignored or None,
    }
