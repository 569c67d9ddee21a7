"""Shows the results of a job."""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from edge.cli.jobs.report import detail, sending_text
from edge.cli.jobs.result_text import result_text
from edge.cli.terminal.fitted_table import utc_time
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import open_access
from edge.config import Settings
from edge.model.result_part import parts_of
from edge.ports.result_trace import Reference
from edge.station.stored_job import StoredJob, load


class CopiedTrace(Struct, frozen=True):
    """A trace of a result; `copied` is its new path, or `problem` why there is none."""

    action: str
    reference: Reference
    copied: str = ""
    problem: str = ""

    def as_data(self) -> dict[str, str | None]:
        """Return what was copied as data."""
        found = {"file": self.reference.file, "copied": self.copied, "problem": self.problem}
        return {"action": self.action} | {name: value or None for name, value in found.items()}


CopyFiles = Callable[[Settings, Sequence[Mapping[str, Any]]], list[CopiedTrace]]
"""Copies the files that results name; it may take long."""


async def read_results(
    settings_file: Path | None, job_id: str, copy_files: CopyFiles | None
) -> tuple[Any, list[CopiedTrace]]:
    """Return the results of the actions of a job, with earlier attempts and late ones, and what was copied of them.

    A command that was never sent, or may not have been, is listed without one.
    Raises Refused, SettingsError and Unavailable.
    """
    async with open_access(settings_file) as at:
        stored = await load(at.store, job_id)
        every = [*_earlier(stored), *_actions(detail(stored)["run"])]
        results = [entry for entry in every if entry.get("result") is not None or entry.get("sending")]
    return results, await asyncio.to_thread(copy_files, at.settings, results) if copy_files else []


def results_text(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each result: action, attempt, whether it came late, evaluation, values, size of its trace.

    The parts of a result, such as the bolts of a batch, follow, one a line.
    """
    for fields in results:
        result = fields["result"]
        if result is None:
            yield printable(f"{fields['action']} #{fields['attempt']}: {fields['error'] or fields['sending']}")
            continue
        late = "late, " if fields.get("late") else ""
        yield printable(f"{fields['action']} #{fields['attempt']}: {late}{result_text(result)}")
        yield from (printable(f"  {part.text}") for part in parts_of(result))


def _earlier(stored: StoredJob) -> Iterator[Mapping[str, Any]]:
    """Yield the earlier attempts, as `detail` has the latest ones, and the late results."""
    for past_attempt in stored.run.past.values() if stored.run else ():
        known = {
            "action": past_attempt.action,
            "step": past_attempt.step,
            "state": past_attempt.state,
            "attempt": past_attempt.attempt,
        }
        times = {"sent_at": utc_time(past_attempt.sent_at), "ended_at": utc_time(past_attempt.ended_at)}
        outcome = {
            "result": past_attempt.result,
            "error": past_attempt.error,
            "late": past_attempt.late,
            "sending": sending_text(past_attempt),
        }
        yield known | times | outcome


def _actions(run: object) -> Sequence[Mapping[str, Any]]:
    return run["actions"] if isinstance(run, Mapping) else []
