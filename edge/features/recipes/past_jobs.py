"""The newest jobs of a Work Master, of the store and of the archive: what a draft is replayed with."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from functools import partial
from typing import Final

import msgspec
from msgspec import Struct

from edge.app.features import archived_runs
from edge.config import Settings
from edge.store.archive_backlog import JobDocuments, load_documents
from edge.store.client import Store
from edge.store.jobs import list_ids

MOST_REPLAYED: Final = 100
"""The jobs that are replayed against a draft; the values of conditions are those of the last ten."""
MOST_SHOWN: Final = 10
_AT_ONCE: Final = 100
_FRESH_S: Final = 10.0
"""How long a list of started jobs is used again: an editor asks for it after each change."""


class PastJob(Struct, frozen=True):
    """A job that has started at an instant; `load` reads its documents, None when they are gone."""

    job_id: str
    run_id: str
    started_at: int
    load: Callable[[], Awaitable[JobDocuments | None]]

    @property
    def place(self) -> tuple[int, str]:
        """Its place in a list, the newest first: jobs that start or are removed do not change it."""
        return -self.started_at, self.run_id


class _StartedJob(Struct, frozen=True):
    """A job of the store with the Work Masters of its order."""

    past: PastJob
    masters: frozenset[str]


class _MasterName(Struct, frozen=True, rename={"id": "ID"}):
    id: str


class _OrderedMasters(Struct, frozen=True, rename={"work_masters": "WorkMasterID"}):
    """The part of a stored order that names its Work Masters."""

    work_masters: tuple[_MasterName, ...] | None = None


class PastJobs:
    """The jobs of the store and of the archive that have started.

    past = PastJobs(store, settings)
    jobs = await past.newest("station-1", "WM-AXLE-FIT-001", 10)
    """

    def __init__(self, store: Store, settings: Settings, clock: Callable[[], float] = time.monotonic) -> None:
        """Create it; a list of the store is read again ten seconds of the clock after it was read."""
        self._store = store
        self._settings = settings
        self._clock = clock
        self._listed: dict[str, tuple[float, Sequence[_StartedJob]]] = {}
        """The jobs of a scope that have started, and until when they are not listed again."""
        self._masters: dict[str, dict[str, frozenset[str]]] = {}
        """The Work Masters of stored runs by scope: the order of a job that has started does not change."""

    async def newest(
        self, scope: str, work_master: str, most: int, after: tuple[int, str] | None = None
    ) -> Sequence[PastJob]:
        """Return the newest jobs of a Work Master, those behind a place; one of store and archive is one.

        Their documents are read one job at a time: those of many large jobs would take the memory of the gateway.
        """
        jobs = {job.run_id: job for job in await self._stored(scope, work_master)}
        # Jobs before the place stand in the archive, too.
        archived = most if after is None else most + MOST_REPLAYED
        for run in await asyncio.to_thread(archived_runs, self._settings, scope, work_master, archived):
            load = partial(asyncio.to_thread, run.load)
            jobs.setdefault(run.run_id, PastJob(run.job_id, run.run_id, run.started_at, load))
        behind = (job for job in jobs.values() if after is None or job.place > after)
        return sorted(behind, key=lambda job: job.place)[:most]

    async def _stored(self, scope: str, work_master: str) -> Sequence[PastJob]:
        until, started = self._listed.get(scope, (0.0, ()))
        if self._clock() >= until:
            started = await self._list(scope)
            self._listed[scope] = self._clock() + _FRESH_S, started
        return [job.past for job in started if work_master in job.masters]

    async def _list(self, scope: str) -> Sequence[_StartedJob]:
        """Read two fields of each stored job."""
        store, known, masters = self._store, self._masters.get(scope, {}), dict[str, frozenset[str]]()
        jobs: list[_StartedJob] = []
        job_ids = await list_ids(store, scope)
        for start in range(0, len(job_ids), _AT_ONCE):
            ids = job_ids[start : start + _AT_ONCE]
            replies = await store.read(
                [("HMGET", store.keys.joborder(job), "started_at", "correlation_id") for job in ids]
            )
            started = [(job, run, int(at)) for job, (at, run) in zip(ids, replies, strict=True) if at]
            fresh = [(job, run) for job, run, _ in started if run not in known]
            orders = (
                await store.read([("HGET", store.keys.joborder(job), "order") for job, _ in fresh]) if fresh else ()
            )
            read = {run: frozenset(_masters_of(order or "")) for (_, run), order in zip(fresh, orders, strict=True)}
            for job, run, at in started:
                masters[run] = known[run] if run in known else read[run]
                past = PastJob(job, run, at, partial(load_documents, store, job, run))
                jobs.append(_StartedJob(past, masters[run]))
        self._masters[scope] = masters
        return jobs


def _masters_of(order: str) -> Iterator[str]:
    """Yield the ids of the Work Masters of a stored order; none of one that cannot be read."""
    try:
        yield from (master.id for master in msgspec.json.decode(order, type=_OrderedMasters).work_masters or ())
    except msgspec.DecodeError:
        return
