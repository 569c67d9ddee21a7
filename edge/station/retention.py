"""Removes ended jobs after their retention time, but not before the MES has confirmed their results."""

import asyncio
import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Literal

import structlog
from msgspec import Struct

from edge.config import Settings
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.model.acceptance import validate_id
from edge.model.isa95 import JobResponse
from edge.model.job_state import Cause
from edge.station.runs import Progress, Runs
from edge.store import archive_backlog, dedupe, ended_jobs, jobs, responses, runs
from edge.store.background import Isolated
from edge.store.bounds import ALARM_PART
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, Committed, join
from edge.store.ended_jobs import KeptJob
from edge.store.jobs import Job

logger = structlog.get_logger(__name__)


async def plan_removal(store: Store, job: Job, cause: Cause, now: int, removed_at: int, dedupe_ms: int) -> Commit:
    """Return the commit that removes a job; `removed_at` is by the clock of the caller. Raises Unavailable.

    Where an archive is on that does not have the job yet, its documents wait for it.
    """
    keys = store.keys
    tombstone = dedupe.bury(keys, job.job_id, job.scope, removed_at, dedupe_ms, await _digests(store, job))
    return join((jobs.remove(keys, job, cause, now), tombstone, await archive_backlog.plan_keeping(store, job)))


async def _digests(store: Store, job: Job) -> tuple[str, ...]:
    # A run that cannot be read must not keep its job.
    with Isolated(logger, "results of a removed job not remembered", job=job.job_id):
        stored_run = await runs.load(store, job.job_id) if job.started_at is not None else None
        return dedupe.digests_of(stored_run.run) if stored_run else ()
    return ()


Confirmation = Literal["mes", "delivery", "clear", "none"]
"""What confirms that the MES has a result: its call, the delivery to a subscriber, Clear only, or its age."""

_ASKED_AGAIN_MS = 600_000
"""Minimum time that a requested result stays: the answer to the MES may be lost, and the request repeated."""


class RetentionPolicy(Struct, frozen=True):
    """The retention time of ended jobs, and the most jobs with unconfirmed results that are kept longer."""

    keep_ended_ms: int
    confirmation: Confirmation = "none"
    max_undelivered: int = 10_000
    """The most results of a scope that are kept beyond their time."""
    dedupe_ms: int = 90_000_000
    most_kept: int = 10_000
    """The most ended jobs of a scope that are kept; beyond it the oldest go, if the MES has their results."""
    drops_undelivered: bool = False
    """Whether the oldest goes beyond that number; else new job orders are refused."""
    delivers: bool = True
    """Whether a broker delivers results; without one, none counts as undelivered."""

    @property
    def refuses_beyond(self) -> int | None:
        """The number of undelivered results from which on new job orders are refused; None: never."""
        never = self.drops_undelivered or self.confirmation == "none" or not self.delivers
        return None if never else self.max_undelivered

    def may_go(self, *, is_delivered: bool, is_confirmed: bool) -> bool:
        """Return whether an ended job may be removed: the MES has its result, or need not confirm it."""
        match self.confirmation:
            case "mes":
                return is_confirmed
            case "delivery" | "clear":
                return is_delivered or is_confirmed
            case "none":
                return True

    def may_be_dropped(self, *, is_delivered: bool) -> bool:
        """Return whether an ended job may be removed when room is short: its result is delivered, but not confirmed."""
        return self.confirmation == "mes" and (is_delivered or not self.delivers)


def retention_policy(settings: Settings) -> RetentionPolicy:
    """Return the policy of a gateway; without a broker no delivery can be confirmed."""
    keep, delivers = settings.retention, bool(settings.mqtt.url)
    return RetentionPolicy(
        keep.ended_jobs * 1000,
        "none" if keep.confirmation == "delivery" and not delivers else keep.confirmation,
        keep.undelivered_jobs,
        keep.dedupe * 1000,
        keep.kept_jobs,
        drops_undelivered=keep.undelivered_full == "delete",
        delivers=delivers or keep.confirmation != "mes",
    )


class Deliveries:
    """Records which results were delivered, and which the MES has confirmed."""

    def __init__(self, store: Store, clock: Clock, policy: RetentionPolicy) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy

    async def confirm(self, job: Job) -> None:
        """Record that the result of a job was delivered by the broker, where that counts.

        Raises Unavailable when the store is gone.
        """
        if job.ended_at is None or job.delivered_at is not None:
            return
        now = self._clock()
        delivered = jobs.record_delivery(self._store.keys, job, now)
        # Stale: the job has changed, and the change is published separately.
        match self._policy.confirmation:
            case "mes":
                await self._store.commit(join((delivered, await self._move_if_listed(job, job.ended_at))))
            case "delivery":
                await self._store.commit(join((delivered, *self._end_of_waiting(job, now, now))))
            case "clear" | "none":
                pass

    async def _move_if_listed(self, job: Job, ended_at: int) -> Commit:
        """Return the move of a job that stays beyond its time to those whose result is delivered."""
        if not await ended_jobs.is_listed(self._store, job.scope, job.job_id):
            return NOTHING
        return ended_jobs.add_unconfirmed(self._store.keys, job.scope, job.job_id, ended_at)

    async def record(self, job: Job, stays_ms: int = 0) -> bool:
        """Record that the result of an ended job was received; the job stays for `stays_ms` at least.

        Returns whether that is recorded. Raises Unavailable when the store is gone.
        """
        if job.ended_at is None or job.confirmed_at is not None:
            return job.confirmed_at is not None
        keys, now = self._store.keys, self._clock()
        parts = (jobs.record_confirmation(keys, job, now), *self._end_of_waiting(job, now, now + stays_ms))
        return isinstance(await self._store.commit(join(parts)), Committed)

    def _end_of_waiting(self, job: Job, now: int, earliest: int) -> tuple[Commit, ...]:
        keys, due = self._store.keys, (job.ended_at or now) + self._policy.keep_ended_ms
        discarded = ended_jobs.discard_kept(keys, job.scope, job.job_id)
        if due > earliest:
            return (discarded,)
        return (discarded, runs.set_timer(keys, job.job_id, earliest))

    async def acknowledge(self, scope: str, job_ids: Iterable[str]) -> list[str]:
        """Record that the MES has the results of ended jobs; return the ids of those that are recorded."""
        return [job_id for job_id in job_ids if await self._acknowledge(scope, job_id)]

    async def _acknowledge(self, scope: str, job_id: str) -> bool:
        while not any(validate_id("JobOrderID", job_id)):
            job = await jobs.load(self._store, job_id)
            if job is None or job.scope != scope or job.ended_at is None:
                return False
            if await self.record(job):
                return True
        return False

    async def record_request(self, responses_read: Iterable[JobResponse]) -> None:
        """Record that the MES has requested these responses; one that has changed since is left out."""
        if self._policy.confirmation not in {"mes", "delivery"}:
            return
        for response in responses_read:
            with Isolated(logger, "request of a result not recorded", job=response.job_order_id):
                job = await jobs.load(self._store, response.job_order_id or "")
                if job and job.ended_at is not None and await responses.load(self._store, job) == response:
                    await self.record(job, _ASKED_AGAIN_MS)

    async def waiting(self, scope: str, count: int) -> list[str]:
        """Return the oldest jobs of a scope that are kept longer because their result was not delivered."""
        return await ended_jobs.oldest(self._store, scope, count)


class Expiry:
    """Removes ended jobs after their retention time, and bounds the number of results that are kept longer."""

    def __init__(self, store: Store, policy: RetentionPolicy) -> None:
        self._store = store
        self._policy = policy
        self._counts: dict[str, int] = {}

    @property
    def most_kept(self) -> int:
        """The most ended jobs of a scope that are kept."""
        return self._policy.most_kept

    @property
    def drops_delivered(self) -> bool:
        """Whether results that are delivered but not confirmed are removed when room is short."""
        return self._policy.confirmation == "mes"

    def due(self, job: Job) -> int | None:
        """Return when a job is to be removed, in milliseconds since the epoch; None before its end."""
        return None if job.ended_at is None else job.ended_at + self._policy.keep_ended_ms

    async def expire(self, job: Job, now: int) -> None:
        """Remove a job after its retention time, or keep it until its result is confirmed."""
        if self.may_go(job):
            await self.remove(job, now)
            return
        keys = self._store.keys
        is_delivered = self._policy.may_be_dropped(is_delivered=job.delivered_at is not None)
        add = ended_jobs.add_unconfirmed if is_delivered else ended_jobs.add_undelivered
        commit = add(keys, job.scope, job.job_id, job.ended_at or now)
        await self._store.commit(
            join((jobs.unchanged(keys, job.job_id, job), commit, runs.set_timer(keys, job.job_id, None)))
        )
        await self._limit(job.scope, now)

    def may_go(self, job: Job | KeptJob) -> bool:
        """Return whether an ended job may be removed: the MES has its result, or need not confirm it."""
        is_delivered, is_confirmed = job.delivered_at is not None, job.confirmed_at is not None
        return self._policy.may_go(is_delivered=is_delivered, is_confirmed=is_confirmed)

    def may_be_dropped(self, job: Job | KeptJob) -> bool:
        """Return whether an ended job may be removed when room is short."""
        return self.may_go(job) or self._policy.may_be_dropped(is_delivered=job.delivered_at is not None)

    async def remove(self, job: Job, now: int) -> None:
        """Remove an ended job, unless it was changed meanwhile; count one whose result the MES has not confirmed."""
        keys = self._store.keys
        removal = await plan_removal(self._store, job, Cause.EXPIRE, now, now, self._policy.dedupe_ms)
        if self.may_go(job):
            await self._store.commit(removal)
            return
        await self._store.commit(join((removal, ended_jobs.count_dropped(keys))))
        advice = "Let the MES confirm results: docs/reference/northbound.md. Or save them with: edge jobs export FILE"
        event = "result deleted unconfirmed" if self.may_be_dropped(job) else "result deleted undelivered"
        # Each one: no other place names the job whose result is gone.
        logger.error(event, scope=job.scope, job=job.job_id, advice=advice)

    async def _limit(self, scope: str, now: int) -> None:
        before, limit = self._counts.get(scope, 0), self._policy.max_undelivered
        counts = await ended_jobs.count_kept_results(self._store, scope)
        kept = self._counts[scope] = counts.undelivered + counts.unconfirmed
        if before < limit * ALARM_PART <= kept:
            advice = "Connect the MES, or save them with: edge jobs export FILE"
            logger.warning(
                "undelivered results above half of limit", scope=scope, count=kept, limit=limit, advice=advice
            )
        beyond = max(0, kept - limit)
        for job_id in await ended_jobs.oldest_unconfirmed(self._store, scope, beyond):
            await self._drop(scope, job_id, now)
        if self._policy.drops_undelivered:
            for job_id in await ended_jobs.oldest(self._store, scope, beyond - counts.unconfirmed):
                await self._drop(scope, job_id, now)

    async def _drop(self, scope: str, job_id: str, now: int) -> None:
        job = None
        with Isolated(logger, "undelivered job unreadable", scope=scope, job=job_id):
            job = await jobs.load(self._store, job_id)
        if job is None or job.ended_at is None:
            # Removed since; it may be stored again with its id.
            await self._store.commit(ended_jobs.discard_kept(self._store.keys, scope, job_id))
            return
        await self.remove(job, now)


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
                # The jobs continue; the next sweep tries again.
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
        if await ended_jobs.count_ended(self._store, scope) <= self._expiry.most_kept:
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
            page = await ended_jobs.ended_page(self._store, scope, self._passed.setdefault(passed, 0), self._page_size)
            beyond = page.kept - self._expiry.most_kept
            if beyond <= 0 or not page.jobs:
                break
            gone += await self._remove_oldest(scope, page.jobs, beyond, may_go)
        return gone

    async def _drop_unconfirmed(self, scope: str, most: int) -> int:
        """Remove the oldest jobs beyond the bound that stay beyond their time, delivered but not confirmed."""
        beyond = await ended_jobs.count_ended(self._store, scope) - self._expiry.most_kept
        oldest = await ended_jobs.oldest_unconfirmed(self._store, scope, min(beyond, most))
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
