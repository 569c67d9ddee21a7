"""Plans the removal of a job: its tombstone outlives it, with the instant of the removal and the results it had."""

import structlog

from edge.model.job_state import Cause
from edge.store import dedupe, jobs, runs, taken_results
from edge.store.client import Store
from edge.store.commit import Commit, join
from edge.store.isolation import Isolated
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)


async def plan_removal(store: Store, job: Job, cause: Cause, now: int, removed_at: int, dedupe_ms: int) -> Commit:
    """Return the commit that removes a job; `removed_at` is by the clock of the caller. Raises Unavailable."""
    keys = store.keys
    tombstone = dedupe.bury(keys, job.job_id, removed_at, dedupe_ms, await _digests(store, job))
    return join((jobs.remove(keys, job, cause, now), tombstone))


async def _digests(store: Store, job: Job) -> tuple[str, ...]:
    # A run that cannot be read must not keep its job.
    with Isolated(logger, "results of a removed job not remembered", job=job.job_id):
        stored = await runs.load(store, job.job_id) if job.started_at is not None else None
        return taken_results.digests_of(stored.run) if stored else ()
    return ()
