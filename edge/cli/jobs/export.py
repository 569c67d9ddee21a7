"""Write ended jobs with their results to a file."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from edge.cli.terminal.audit import recorded
from edge.cli.terminal.fitted_table import utc_time
from edge.cli.terminal.store_access import open_access
from edge.foundation.files import replace_atomically, sync
from edge.model.isa95 import JobOrderAndState
from edge.model.job_state import has_ended, state_entries
from edge.station.clock import store_clock
from edge.station.retention import Deliveries, retention_policy
from edge.store import jobs, responses, undelivered
from edge.store.client import Store
from edge.store.jobs import Job

_ALL = 1_000_000


async def export_jobs(
    settings_file: Path | None, file: Path, scope: str | None, *, undelivered_only: bool, confirm: bool
) -> int:
    """Write one JSON object per job to a file, which appears whole or not at all; return the number of jobs.

    With `confirm`, the results in the file count as delivered once it is on the disk.
    """
    count, unconfirmed = 0, list[Job]()
    async with open_access(settings_file) as at:
        scopes = await at.scopes(scope)
        with replace_atomically(file, 0o640) as out:
            async for job in _ended(at.store, scopes, undelivered_only=undelivered_only):
                out.write(msgspec.json.encode(await _record(at.store, job)) + b"\n")
                count += 1
                if confirm:
                    unconfirmed.append(job)
            sync(out)
        if confirm:
            async with recorded(at, "jobs export --confirm", file.name, f"{count} jobs"):
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
        *await undelivered.oldest(store, scope, _ALL),
        *await undelivered.oldest_unconfirmed(store, scope, _ALL),
    ]


async def _record(store: Store, job: Job) -> dict[str, object]:
    return {
        "scope": job.scope,
        "delivered_at": utc_time(job.delivered_at),
        "confirmed_at": utc_time(job.confirmed_at),
        "order": JobOrderAndState(job_order=job.order, state=state_entries(job.status)),
        "response": await responses.load(store, job),
    }
