"""Takes over what an instance left that lives no more: the work it had taken, and the commands it had to send."""

import time
from collections.abc import Sequence
from enum import Enum, auto

import structlog

from edge.errors import Unavailable
from edge.station.instance import Instance
from edge.station.runs import Runs
from edge.station.sender import take_over
from edge.station.worker import Worker
from edge.store import leases, runs, work
from edge.store.client import MAX_BLOCK_MS, Store
from edge.store.commit import Commit
from edge.store.isolation import Isolated

logger = structlog.get_logger(__name__)

_LATE_S = 2 * MAX_BLOCK_MS / 1000
"""How long a frozen process may yet be given work: what it asked the server for before still stands there."""


class _Outcome(Enum):
    """What became of the outbox of a job: it is ours now, concerns no scope of ours, or cannot be read yet."""

    TAKEN = auto()
    NOT_OURS = auto()
    LEFT = auto()


class TakeOver:
    """Serves the instances that are gone, one after the other."""

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
        """Take over until cancelled; what cannot be now comes again with the next look."""
        while True:
            former = await self._instance.gone.get()
            try:
                # Who holds its lease meanwhile keeps others off, and the instance itself from its start.
                if await leases.acquire(self._store, former, self._instance.token) is None:
                    await self._take_over(former)
                    await leases.release(self._store, former, self._instance.token)
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
            # The wait begins again: an unregistered instance would not be looked for.
            self._since.pop(former, None)
        elif time.monotonic() - self._since.setdefault(former, time.monotonic()) > self._late_s:
            del self._since[former]
            # It may have been given some since, which would go with it.
            if not await work.has_pending(self._store, former, self._scopes):
                await leases.unregister(self._store, self._scopes, former)

    async def _take_outbox(self, job_id: str, former: str) -> _Outcome:
        with Isolated(logger, "job cannot be taken over", job=job_id, former=former):
            loaded = await self._runs.get(job_id)
            if loaded is None or loaded.job.scope not in self._scopes:
                return _Outcome.NOT_OURS
            await take_over(self._runs, job_id, former, Commit())
            return _Outcome.TAKEN
        return _Outcome.LEFT
