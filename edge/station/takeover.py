"""Takes over the unfinished work and the unsent commands of ended instances."""

import time
from collections.abc import Sequence
from enum import Enum, auto

import structlog

from edge.foundation.errors import Unavailable
from edge.station.instance import Instance
from edge.station.runs import Runs
from edge.station.sender import take_over
from edge.station.worker import Worker
from edge.store import instance_leases, runs, work
from edge.store.client import MAX_BLOCK_MS, Store
from edge.store.commit import Commit
from edge.store.defects import Isolated

logger = structlog.get_logger(__name__)

_LATE_S = 2 * MAX_BLOCK_MS / 1000
"""How long the server may still deliver work to a frozen process, whose last request is pending there."""


class _Outcome(Enum):
    """The outcome for the outbox of a job: taken over, of another scope, or not readable yet."""

    TAKEN = auto()
    NOT_OURS = auto()
    LEFT = auto()


class TakeOver:
    """Takes over from ended instances, one after the other."""

    def __init__(
        self,
        store: Store,
        scopes: Sequence[str],
        instance: Instance,
        runs: Runs,
        worker: Worker,
        late_s: float = _LATE_S,
    ) -> None:
        self._store = store
        self._scopes = tuple(scopes)
        self._instance = instance
        self._runs = runs
        self._worker = worker
        self._late_s = late_s
        self._since: dict[str, float] = {}

    async def run(self) -> None:
        """Take over until cancelled; what fails now is retried at the next look."""
        while True:
            ended = await self._instance.gone.get()
            former, token = ended.name, self._instance.token
            try:
                # Holding its lease meanwhile excludes other instances and the start of the instance itself.
                if await instance_leases.acquire(self._store, former, token, ended.lease) is None:
                    await self._take_over(former)
                    await instance_leases.release(self._store, former, token)
            except Unavailable as error:
                logger.warning("take-over waits for the store", former=former, reason=error.message)

    async def _take_over(self, former: str) -> None:
        claimed = await work.claim_from(self._store, former, self._scopes)
        if claimed:
            self._worker.claimed()
        found = [await self._take_outbox(job_id, former) for job_id in await runs.jobs_with_outbox(self._store, former)]
        if claimed or _Outcome.TAKEN in found:
            taken = found.count(_Outcome.TAKEN)
            logger.info("took over from an instance that is gone", former=former, work=claimed, jobs=taken)
        elif _Outcome.LEFT in found:
            # The wait begins again: an unregistered instance would not be found.
            self._since.pop(former, None)
        elif time.monotonic() - self._since.setdefault(former, time.monotonic()) > self._late_s:
            del self._since[former]
            # It may have received work since, which would be lost with it.
            if not await work.has_pending(self._store, former, self._scopes):
                await instance_leases.unregister(self._store, self._scopes, former)

    async def _take_outbox(self, job_id: str, former: str) -> _Outcome:
        with Isolated(logger, "job cannot be taken over", job=job_id, former=former):
            loaded = await self._runs.get(job_id)
            if loaded is None or loaded.job.scope not in self._scopes:
                return _Outcome.NOT_OURS
            await take_over(self._runs, job_id, former, Commit())
            return _Outcome.TAKEN
        return _Outcome.LEFT
