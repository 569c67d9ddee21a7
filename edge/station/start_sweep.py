"""Repairs the queue of starts: finds jobs that are allowed to start and have neither a queue entry nor a timer."""

import asyncio
import contextlib
from collections.abc import Callable, Collection

import structlog

from edge.access.mode import ModeWatch
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.model.job_state import JobState
from edge.station.start import plan_start
from edge.store import instance_leases, jobs, runs, work
from edge.store.client import Store
from edge.store.commit import Committed, join
from edge.store.work import WorkKind

logger = structlog.get_logger(__name__)

SWEEP_INTERVAL_S = 60.0


class StartSweep:
    """Repairs the queue of starts of some scopes once a minute.

    A job without a timer returns to the queue; a queue that is longer than its work stream gets work entries; work of
    an unregistered consumer is claimed, and `on_claimed` is called.
    """

    def __init__(
        self,
        store: Store,
        scopes: Collection[str],
        clock: Clock,
        on_claimed: Callable[[], None],
        interval_s: float = SWEEP_INTERVAL_S,
        mode: ModeWatch | None = None,
    ) -> None:
        """Create the sweep; during a maintenance mode of `mode` it adds no work, and it runs at once after its end."""
        self._store = store
        self._scopes = tuple(scopes)
        self._clock = clock
        self._on_claimed = on_claimed
        self._interval_s = interval_s
        self._mode = mode
        self._wake = asyncio.Event()
        if mode:
            mode.listeners.append(lambda _: self._wake.set())

    async def run(self) -> None:
        """Run a sweep at each interval until cancelled."""
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._interval_s):
                    await self._wake.wait()
            self._wake.clear()
            try:
                await self.sweep()
            except Unavailable as error:
                logger.debug("store unavailable, retrying", task="start sweep", reason=error.message)
            except Exception:
                # A scope that cannot be repaired must not end the gateway; the next sweep tries again.
                logger.exception("start sweep failed")

    async def sweep(self) -> None:
        """Repair every scope once."""
        await work.create_groups(self._store, self._scopes)
        for scope in self._scopes:
            await self._return_jobs(scope)
            if not (self._mode and self._mode.in_force):
                await self._add_entries(scope)
            await self._claim_strays(scope)

    async def _return_jobs(self, scope: str) -> None:
        keys = self._store.keys
        open_ids = await jobs.list_open(self._store, scope)
        allowed = await jobs.load_allowed(self._store, open_ids)
        queued = set(await jobs.queued_starts(self._store, scope, len(open_ids) + 1))
        timed = await runs.jobs_with_timer(self._store, [job.job_id for job in allowed])
        for job in allowed:
            if job.job_id in queued or job.job_id in timed or job.status.state is not JobState.ALLOWED_TO_START:
                continue
            planned = plan_start(keys, job, self._clock())
            result = await self._store.commit(join((jobs.unchanged(keys, job.job_id, job), planned)))
            if isinstance(result, Committed):
                logger.warning("job returned to the queue of starts", job=job.job_id, scope=scope)

    async def _add_entries(self, scope: str) -> None:
        queued = await jobs.queued_starts(self._store, scope, _MOST_QUEUED)
        missing = len(queued) - await work.length(self._store, scope)
        if missing > 0:
            added = [work.add(self._store.keys, scope, WorkKind.START_RECIPE, job_id) for job_id in queued[:missing]]
            await self._store.commit(join(added))
            logger.warning("work entries added", scope=scope, entries=missing)

    async def _claim_strays(self, scope: str) -> None:
        for stray in await instance_leases.unregistered(
            self._store, scope, await work.pending_consumers(self._store, scope)
        ):
            claimed = await work.claim_from(self._store, stray, (scope,))
            if claimed:
                logger.warning("work claimed", scope=scope, former=stray, entries=claimed)
                self._on_claimed()


_MOST_QUEUED = 10_000
