"""Continues the jobs that wait for locks, and releases the locks of jobs that no longer need them."""

import structlog

from edge.access.locks import plan_acquire, release
from edge.model.lock import LockKind
from edge.sfc.run import lock_reason
from edge.sfc.signal import Granted
from edge.station.active_runs import ActiveRuns
from edge.station.decision import Decision
from edge.station.runs import Runs, claim_of, owner_of
from edge.store import locks
from edge.store import runs as run_store
from edge.store.background import Isolated, poll_store
from edge.store.commit import NOTHING, Commit, Committed, join
from edge.store.locks import StoredLock
from edge.store.server_time import server_time

logger = structlog.get_logger(__name__)

SWEEP_EVERY_S = 10.0


async def continue_with_locks(runs: Runs, job_id: str, done: Commit) -> None:
    """Acquire the next locks of a job that waits, and continue it once it holds all; `done` is part of the commit.

    Raises Unavailable when the store is gone.
    """
    store = runs.store
    while True:
        loaded = await runs.load(job_id)
        missing = loaded.stored.run.locks.missing if loaded else ()
        if loaded is None or not missing:
            await store.commit(done)
            return
        wait = loaded.stored.run.locks
        claim = claim_of(job_id, loaded.job.scope, lock_reason(wait), await server_time(store))
        plan = await plan_acquire(store, LockKind.EQUIPMENT, missing, claim)
        if not plan.is_held:
            unchanged = run_store.unchanged(store.keys, loaded.stored)
            if isinstance(await store.commit(join((plan.commit, unchanged, done))), Committed):
                return
        elif isinstance(await runs.signal(job_id, Granted(missing), also=lambda _: done), Decision):
            return


class LockSweep:
    """Repairs the locks of jobs: releases those of jobs that ended without a decision, continues jobs without work."""

    def __init__(self, runs: Runs, active_runs: ActiveRuns, every_s: float = SWEEP_EVERY_S) -> None:
        self._runs = runs
        self._active_runs = active_runs
        self._every_s = every_s

    async def run(self) -> None:
        """Run a sweep at each interval until cancelled; retry while the store is unavailable."""
        await poll_store(self._runs.store.defects, "locks of jobs", self.sweep, self._every_s)

    async def sweep(self) -> None:
        """Repair every lock, and every run that waits, once."""
        for stored in await locks.load_all(self._runs.store, (LockKind.EQUIPMENT,)):
            claims = (stored.lock.holder, *stored.lock.waiters) if stored.lock else ()
            for job_id in [claim.job_id for claim in claims if claim.job_id]:
                # The lock of a job that cannot be read stays: a newer release may run it.
                with Isolated(logger, "lock cannot be checked", job=job_id, lock=stored.object_id):
                    await self._release_unneeded(stored, job_id)
        for job_id, loaded in tuple(self._active_runs.loaded.items()):
            if loaded.stored.run.locks.missing:
                with Isolated(logger, "lock cannot be acquired", job=job_id):
                    await continue_with_locks(self._runs, job_id, NOTHING)

    async def _release_unneeded(self, stored: StoredLock, job_id: str) -> None:
        store = self._runs.store
        loaded = await self._runs.load(job_id)
        ended = loaded is None or loaded.job.ended_at is not None
        if loaded and not ended and stored.object_id in loaded.stored.run.locks.claimed:
            return
        unchanged = run_store.unchanged(store.keys, loaded.stored) if loaded else NOTHING
        after = release(stored.lock, owner_of(job_id), await server_time(store))
        # Stale: another instance was faster.
        if isinstance(await store.commit(join((locks.save(store.keys, stored, after), unchanged))), Committed):
            logger.warning("lock released", job=job_id, lock=stored.object_id)
