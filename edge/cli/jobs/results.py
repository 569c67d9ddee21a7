"""Shows the results of a job, and copies their traces and files."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from edge.cli.jobs.report import detail, sending_text
from edge.cli.jobs.result_text import result_text
from edge.cli.jobs.table import utc_time
from edge.cli.terminal.output import printable
from edge.cli.terminal.store_access import open_access
from edge.features.traces.files import read_file
from edge.foundation.errors import Refused
from edge.foundation.files import write_atomically
from edge.model.result_part import parts_of
from edge.ports.result_trace import Reference, stored_in
from edge.station.stored_job import StoredJob, load

_FILE_MODE = 0o644


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


async def read_results(settings_file: Path | None, job_id: str, target: Path | None) -> tuple[Any, list[CopiedTrace]]:
    """Return the results of the actions of a job, with earlier attempts and late ones; copy their traces to a target.

    A command that was never sent, or may not have been, is listed without one.
    Each file is compared with the hash in the result. Raises Refused, SettingsError and Unavailable.
    """
    async with open_access(settings_file) as at:
        stored = await load(at.store, job_id)
        every = [*_earlier(stored), *_actions(detail(stored)["run"])]
        results = [each for each in every if each.get("result") is not None or each.get("sending")]
        if target is None:
            return results, []
        directory = at.settings.traces.directory
    return results, await asyncio.to_thread(_copy_all, Path(directory), results, target)


def results_text(results: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield a line for each result: action, attempt, whether it came late, evaluation, values, size of its trace.

    The parts of a result, such as the bolts of a batch, follow, one a line.
    """
    for each in results:
        result = each["result"]
        if result is None:
            yield printable(f"{each['action']} #{each['attempt']}: {each['error'] or each['sending']}")
            continue
        late = "late, " if each.get("late") else ""
        yield printable(f"{each['action']} #{each['attempt']}: {late}{result_text(result)}")
        yield from (printable(f"  {part.text}") for part in parts_of(result))


def _earlier(stored: StoredJob) -> Iterator[Mapping[str, Any]]:
    """Yield the earlier attempts, as `detail` has the latest ones, and the late results."""
    for each in stored.run.past.values() if stored.run else ():
        known = {"action": each.action, "step": each.step, "state": each.state, "attempt": each.attempt}
        times = {"sent_at": utc_time(each.sent_at), "ended_at": utc_time(each.ended_at)}
        outcome = {"result": each.result, "error": each.error, "late": each.late, "sending": sending_text(each)}
        yield known | times | outcome


def _actions(run: object) -> Sequence[Mapping[str, Any]]:
    return run["actions"] if isinstance(run, Mapping) else []


def _copy_all(directory: Path, results: Sequence[Mapping[str, Any]], target: Path) -> list[CopiedTrace]:
    target.mkdir(parents=True, exist_ok=True)
    return [
        _copy(directory, each["action"], reference, target)
        for each in results
        for reference in stored_in(each["result"])
    ]


def _copy(directory: Path, action: str, reference: Reference, target: Path) -> CopiedTrace:
    path = target / Path(reference.file).name
    try:
        write_atomically(path, read_file(directory, reference), _FILE_MODE)
    except Refused as refusal:
        return CopiedTrace(action, reference, problem=refusal.message)
    return CopiedTrace(action, reference, copied=str(path))
