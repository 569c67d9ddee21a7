"""Removes ended jobs after their retention time, but not before the MES has received their results."""

from typing import Literal

import structlog
from msgspec import Struct

from edge.config import Settings
from edge.instant import Clock
from edge.model.job_state import Cause
from edge.store import dedupe, jobs, runs, undelivered
from edge.store.bounds import ALARM_PART
from edge.store.client import Store
from edge.store.commit import Commit, join
from edge.store.isolation import Isolated
from edge.store.jobs import Job
from edge.store.keys import Keys

logger = structlog.get_logger(__name__)

Confirmation = Literal["delivery", "clear", "none"]
"""What confirms that the MES has a result: its delivery to a subscriber, Clear only, or its age."""


class RetentionPolicy(Struct, frozen=True):
    """The retention time of ended jobs, and the most jobs with undelivered results that are kept longer."""

    keep_ended_ms: int
    confirmation: Confirmation = "none"
    max_undelivered: int = 10_000
    dedupe_ms: int = 90_000_000
    most_kept: int = 10_000
    """The most ended jobs of a scope that are kept; beyond it the oldest go, if the MES has their results."""
    drops_undelivered: bool = False
    """Whether the oldest goes beyond that number; else new job orders are refused."""

    @property
    def refuses_beyond(self) -> int | None:
        """The number of undelivered results from which on new job orders are refused; None: never."""
        return None if self.drops_undelivered or self.confirmation == "none" else self.max_undelivered


def retention_policy(settings: Settings) -> RetentionPolicy:
    """Return the policy of a gateway; without a broker no delivery can be confirmed."""
    keep = settings.retention
    return RetentionPolicy(
        keep.ended_jobs * 1000,
        "none" if keep.confirmation == "delivery" and not settings.mqtt.url else keep.confirmation,
        keep.undelivered_jobs,
        keep.dedupe * 1000,
        keep.kept_jobs,
        drops_undelivered=keep.undelivered_full == "delete",
    )


class Deliveries:
    """Records which results were delivered."""

    def __init__(self, store: Store, clock: Clock, policy: RetentionPolicy) -> None:
        self._store = store
        self._clock = clock
        self._policy = policy

    async def confirm(self, job: Job) -> None:
        """Record that the result of a job was delivered by the broker, where that counts.

        Raises Unavailable when the store is gone.
        """
        if self._policy.confirmation == "delivery":
            await self.record(job)

    async def record(self, job: Job) -> None:
        """Record that somebody has the result of an ended job. Raises Unavailable when the store is gone."""
        if job.ended_at is None or job.delivered_at is not None:
            return
        keys, now = self._store.keys, self._clock()
        parts = [jobs.confirm_delivery(keys, job, now), undelivered.discard(keys, job.scope, job.job_id)]
        if job.ended_at + self._policy.keep_ended_ms <= now:
            parts.append(runs.set_timer(keys, job.job_id, now))
        # Stale: the job has changed, and the change is published separately.
        await self._store.commit(join(parts))

    async def waiting(self, scope: str, count: int) -> list[str]:
        """Return the oldest jobs of a scope that are kept longer because their result was not delivered."""
        return await undelivered.oldest(self._store, scope, count)


class Expiry:
    """Removes ended jobs after their retention time, and bounds the number of undelivered results."""

    def __init__(self, store: Store, policy: RetentionPolicy) -> None:
        self._store = store
        self._policy = policy
        self._counts: dict[str, int] = {}

    @property
    def most_kept(self) -> int:
        """The most ended jobs of a scope that are kept."""
        return self._policy.most_kept

    def due(self, job: Job) -> int | None:
        """Return when a job is to be removed, in milliseconds since the epoch; None before its end."""
        return None if job.ended_at is None else job.ended_at + self._policy.keep_ended_ms

    async def expire(self, job: Job, now: int) -> None:
        """Remove a job after its retention time, or keep it until its result is delivered."""
        if self.may_go(is_delivered=job.delivered_at is not None):
            await self.remove(job, now)
            return
        keys = self._store.keys
        kept = undelivered.add(keys, job.scope, job.job_id, job.ended_at or now)
        await self._store.commit(
            join((jobs.unchanged(keys, job.job_id, job), kept, runs.set_timer(keys, job.job_id, None)))
        )
        await self._limit(job.scope, now)

    def may_go(self, *, is_delivered: bool) -> bool:
        """Return whether an ended job may be removed: the MES has its result, or need not confirm it."""
        return is_delivered or self._policy.confirmation == "none"

    async def remove(self, job: Job, now: int) -> None:
        """Remove an ended job, unless it was changed meanwhile."""
        await self._store.commit(self._removal(self._store.keys, job, now))

    async def _limit(self, scope: str, now: int) -> None:
        before = self._counts.get(scope, 0)
        count = self._counts[scope] = await undelivered.count(self._store, scope)
        limit = self._policy.max_undelivered
        if before < limit * ALARM_PART <= count:
            advice = "Connect the MES, or save them with: edge jobs export FILE"
            logger.warning("undelivered results pile up", scope=scope, count=count, limit=limit, advice=advice)
        if not self._policy.drops_undelivered:
            return
        for job_id in await undelivered.oldest(self._store, scope, max(0, count - limit)):
            await self._drop(scope, job_id, now)

    async def _drop(self, scope: str, job_id: str, now: int) -> None:
        job = None
        with Isolated(logger, "undelivered job unreadable", scope=scope, job=job_id):
            job = await jobs.load(self._store, job_id)
        if job is None or job.ended_at is None:
            # Removed since; it may be stored again with its id.
            await self._store.commit(undelivered.discard(self._store.keys, scope, job_id))
            return
        logger.error("result deleted undelivered", scope=scope, job=job_id, limit=self._policy.max_undelivered)
        await self.remove(job, now)

    def _removal(self, keys: Keys, job: Job, now: int) -> Commit:
        tombstone = dedupe.bury(keys, job.job_id, now, self._policy.dedupe_ms)
        return join((jobs.remove(keys, job, Cause.EXPIRE, now), tombstone))
