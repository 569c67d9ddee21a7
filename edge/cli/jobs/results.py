"""Shows the results of a job, and writes ended jobs with their results to a file."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from edge.cli.jobs.tables import member_lines, result_text
from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import counted, printable
from edge.cli.terminal.store_access import StoreAccess
from edge.config import Settings
from edge.foundation.files import replace_atomically, sync
from edge.model.instant import rfc3339
from edge.model.isa95 import JobOrderAndState
from edge.model.job_state import has_ended, state_entries
from edge.model.result_part import parts_of
from edge.ports.result_trace import Reference
from edge.station.clock import store_clock
from edge.station.public_result import PublicResult, public_results
from edge.station.retention import Deliveries, retention_policy
from edge.station.stored_job import load
from edge.store import ended_jobs, jobs, responses
from edge.store.client import Store
from edge.store.jobs import Job


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


CopyFiles = Callable[[Settings, Sequence[PublicResult]], list[CopiedTrace]]
"""Copies the files that results name; it may take long."""


async def read_results(
    at: StoreAccess, job_id: str, copy_files: CopyFiles | None
) -> tuple[tuple[PublicResult, ...], list[CopiedTrace]]:
    """Return the results of the actions of a job, with earlier attempts and late ones, and what was copied of them.

    A command that was never sent, or may not have been, is listed without one.
    Raises Refused, SettingsError and Unavailable.
    """
    results = public_results(await load(at.store, job_id))
    return results, await asyncio.to_thread(copy_files, at.settings, results) if copy_files else []


_LONGEST_SUMMARY: Final = 60
"""Characters; longer data are listed by their members, one a line."""


def results_text(results: Sequence[PublicResult]) -> Iterator[str]:
    """Yield a line for each result: action, attempt, whether it came late, evaluation, values, size of its trace.

    The parts of a result, such as the bolts of a batch, follow, one a line; so do the members of other large data.
    """
    for result in results:
        if result.result is None:
            yield printable(f"{result.action} #{result.attempt}: {result.error or result.sending}")
            continue
        late, summary = "late" if result.late else "", result_text(result.result)
        members: Sequence[str] = [part.text for part in parts_of(result.result)]
        if not members and len(summary) > _LONGEST_SUMMARY:
            members = [*member_lines(result.result)] or [summary]
            summary = ""
        yield printable(f"{result.action} #{result.attempt}: {', '.join(filter(None, (late, summary)))}".rstrip())
        yield from (printable(f"  {member}") for member in members)


_ALL = 1_000_000


async def export_jobs(at: StoreAccess, file: Path, scope: str | None, *, undelivered_only: bool, confirm: bool) -> int:
    """Write one JSON object per job to a file, which appears whole or not at all; return the number of jobs.

    With `confirm`, the results in the file count as delivered once it is on the disk.
    """
    count, unconfirmed = 0, list[Job]()
    scopes = await at.scopes(scope)
    with replace_atomically(file, 0o640) as out:
        async for job in _ended(at.store, scopes, undelivered_only=undelivered_only):
            out.write(msgspec.json.encode(await _record(at.store, job)) + b"\n")
            count += 1
            if confirm:
                unconfirmed.append(job)
        sync(out)
    if confirm:
        async with recorded(at, "jobs export --confirm", file.name, counted(count, "job")):
            deliveries = Deliveries(at.store, await store_clock(at.store), retention_policy(at.settings))
            for job in unconfirmed:
                await deliveries.record(job)
    return count


async def _ended(store: Store, scopes: Sequence[str], *, undelivered_only: bool) -> AsyncIterator[Job]:
    for scope in scopes:
        listed = await _waiting(store, scope) if undelivered_only else await jobs.list_ids(store, scope)
        for job_id in listed:
            job = await jobs.load(store, job_id)
            if job is not None and has_ended(job.status):
                yield job


async def _waiting(store: Store, scope: str) -> list[str]:
    """Return the jobs that stay because the MES has not confirmed their result."""
    return [
        *await ended_jobs.oldest(store, scope, _ALL),
        *await ended_jobs.oldest_unconfirmed(store, scope, _ALL),
    ]


async def _record(store: Store, job: Job) -> dict[str, object]:
    return {
        "scope": job.scope,
        "delivered_at": rfc3339(job.delivered_at),
        "confirmed_at": rfc3339(job.confirmed_at),
        "order": JobOrderAndState(job_order=job.order, state=state_entries(job.status)),
        "response": await responses.load(store, job),
    }
