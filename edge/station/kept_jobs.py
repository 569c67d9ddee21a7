"""Bounds the number of ended jobs: the oldest whose results the MES has are removed early, then delivered ones."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Sequence

import structlog

from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.station.retention import Expiry
from edge.station.runs import Progress, Runs
from edge.store import ended_jobs, jobs, undelivered
from edge.store.client import Store
from edge.store.defects import Isolated
from edge.store.ended_jobs import KeptJob
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)

_PAGE_SIZE = 250
_BUNDLE_S = 1.0
"""How long ends of jobs are collected before their number is compared with the bound."""
_RECHECK_S = 15.0
"""The interval of comparisons while no job ends, and of reading again the jobs that stayed: the MES may have them."""
_MOST_AT_ONCE = 500
"""The most jobs of a scope that one sweep removes: the first sweep after an upgrade may find tens of thousands."""

_MayGo = Callable[[Job | KeptJob], bool]


class KeptJobs:
    """Removes the ended jobs of our scopes beyond a number, the oldest first.

    Those go first whose result the MES has confirmed, then those with a delivered result; never an undelivered one.
    """

    def __init__(
        self,
        store: Store,
        scopes: Collection[str],
        runs: Runs,
        expiry: Expiry,
        clock: Clock,
        most_at_once: int = _MOST_AT_ONCE,
        page_size: int = _PAGE_SIZE,
    ) -> None:
        self._store = store
        self._scopes = scopes
        self._runs = runs
        self._expiry = expiry
        self._clock = clock
        self._most_at_once = most_at_once
        self._page_size = page_size
        self._has_end = asyncio.Event()
        self._passed: dict[tuple[str, _MayGo], int] = {}
        """How many entries at the start of the index stay, by scope: they are read again at the next recheck only."""
        self._rechecked_at = 0
        runs.listeners.append(self._note)

    async def run(self) -> None:
        """Remove jobs beyond the bound after others have ended, and at an interval, until cancelled."""
        while True:
            try:
                await self.sweep()
            except Unavailable as error:
                logger.debug("store unavailable, retrying", task="kept jobs", reason=error.message)
            except Exception:
                # The jobs go on; the next sweep tries again.
                logger.exception("kept jobs not bounded")
            await asyncio.sleep(_BUNDLE_S)
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_RECHECK_S):
                    await self._has_end.wait()

    def _note(self, progress: Progress) -> None:
        if progress.loaded.job.ended_at is not None:
            self._has_end.set()

    async def sweep(self) -> None:
        """Remove the ended jobs beyond the bound, at most some hundreds of each scope."""
        now = self._clock()
        if not self._has_end.is_set() or abs(now - self._rechecked_at) >= _RECHECK_S * 1000:
            self._passed.clear()
            self._rechecked_at = now
        self._has_end.clear()
        for scope in self._scopes:
            await self._bound(scope)

    async def _bound(self, scope: str) -> None:
        if await ended_jobs.count(self._store, scope) <= self._expiry.most_kept:
            return  # No page is read below the bound.
        confirmed, delivered = self._expiry.may_go, self._expiry.may_be_dropped
        gone = await self._remove_beyond(scope, confirmed, self._most_at_once)
        if self._expiry.drops_delivered:
            dropped = await self._drop_unconfirmed(scope, self._most_at_once - gone)
            dropped += await self._remove_beyond(scope, delivered, self._most_at_once - gone - dropped)
            if dropped:
                # Some of them were counted among those that stay.
                self._passed.pop((scope, confirmed), None)
            gone += dropped
        if gone >= self._most_at_once:
            self._has_end.set()

    async def _remove_beyond(self, scope: str, may_go: _MayGo, most: int) -> int:
        """Remove the oldest jobs of the index beyond the bound that may go; return how many are gone."""
        gone, passed = 0, (scope, may_go)
        while gone < most:
            page = await ended_jobs.page(self._store, scope, self._passed.setdefault(passed, 0), self._page_size)
            beyond = page.kept - self._expiry.most_kept
            if beyond <= 0 or not page.jobs:
                break
            gone += await self._remove_oldest(scope, page.jobs, beyond, may_go)
        return gone

    async def _drop_unconfirmed(self, scope: str, most: int) -> int:
        """Remove the oldest jobs beyond the bound that stay beyond their time, delivered but not confirmed."""
        beyond = await ended_jobs.count(self._store, scope) - self._expiry.most_kept
        oldest = await undelivered.oldest_unconfirmed(self._store, scope, min(beyond, most))
        return sum([await self._remove(job_id, self._expiry.may_be_dropped) for job_id in oldest])

    async def _remove_oldest(self, scope: str, page: Sequence[KeptJob], many: int, may_go: _MayGo) -> int:
        """Remove up to `many` jobs of a page; return how many are gone, also by another instance."""
        gone = 0
        for kept_job in page:
            if gone == many:
                break
            is_gone = not kept_job.scope
            goes = kept_job.has_ended and kept_job.scope == scope and may_go(kept_job)
            if goes and await self._remove(kept_job.job_id, may_go):
                gone += 1
            else:
                gone += is_gone
                self._passed[scope, may_go] += 1
        return gone

    async def _remove(self, job_id: str, may_go: _MayGo) -> bool:
        """Remove a job, unless another instance has; return False for one that cannot be read."""
        with Isolated(logger, "ended job unreadable", job=job_id):
            job = await jobs.load(self._store, job_id)
            if job and not (job.ended_at and may_go(job)):
                return True  # Since the page was read the MES has removed it, and stored another one with its id.
            if job:
                await self._expiry.remove(job, self._clock())
            self._runs.outbox.drop_run(job_id)
            return True
        return False
