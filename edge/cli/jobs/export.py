"""Write ended jobs with their results to a file."""

import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import msgspec

from edge.cli.jobs.table import utc_time
from edge.cli.terminal.store_access import open_access
from edge.model.isa95 import JobOrderAndState
from edge.model.job_state import has_ended, state_entries
from edge.store import jobs, responses, undelivered
from edge.store.client import Store

_ALL = 1_000_000


async def export_jobs(settings_file: Path | None, file: Path, scope: str | None, *, undelivered_only: bool) -> int:
    """Write one JSON object per job to a file, which appears whole or not at all; return the number of jobs."""
    draft = file.with_name(f".{file.name}.part")
    count = 0
    try:
        async with open_access(settings_file) as at:
            scopes = await at.scopes(scope)
            with draft.open("wb") as out:
                async for record in _records(at.store, scopes, undelivered_only=undelivered_only):
                    out.write(msgspec.json.encode(record) + b"\n")
                    count += 1
                out.flush()
                os.fsync(out.fileno())
        draft.rename(file)
    finally:
        draft.unlink(missing_ok=True)
    return count


async def _records(store: Store, scopes: Sequence[str], *, undelivered_only: bool) -> AsyncIterator[dict[str, object]]:
    for scope in scopes:
        listed = await undelivered.oldest(store, scope, _ALL) if undelivered_only else await jobs.list_ids(store, scope)
        for job_id in listed:
            job = await jobs.load(store, job_id)
            if job is None or not has_ended(job.status):
                continue
            yield {
                "scope": scope,
                "delivered_at": utc_time(job.delivered_at),
                "order": JobOrderAndState(job_order=job.order, state=state_entries(job.status)),
                "response": await responses.load(store, job),
            }
