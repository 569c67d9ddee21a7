"""The newest jobs of a Work Master, of the store and of the archive: what a draft is replayed with."""

import asyncio
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


class PastJob(Struct, frozen=True):
    """A job that has started at an instant; `load` reads its documents, None when they are gone."""

    job_id: str
    run_id: str
    started_at: int
    load: Callable[[], Awaitable[JobDocuments | None]]


async def newest_jobs(store: Store, settings: Settings, scope: str, work_master: str, most: int) -> Sequence[PastJob]:
    """Return the newest jobs of a Work Master that have started; one of store and archive is one.

    Their documents are read one job at a time: those of many large jobs would take the memory of the gateway.
    """
    jobs = {job.run_id: job for job in await _stored(store, scope, work_master)}
    for run in await asyncio.to_thread(archived_runs, settings, scope, work_master, most):
        load = partial(asyncio.to_thread, run.load)
        jobs.setdefault(run.run_id, PastJob(run.job_id, run.run_id, run.started_at, load))
    return sorted(jobs.values(), key=lambda job: -job.started_at)[:most]


class _MasterName(Struct, frozen=True, rename={"id": "ID"}):
    id: str


class _OrderedMasters(Struct, frozen=True, rename={"work_masters": "WorkMasterID"}):
    """The part of a stored order that names its Work Masters."""

    work_masters: tuple[_MasterName, ...] | None = None


async def _stored(store: Store, scope: str, work_master: str) -> Sequence[PastJob]:
    jobs: list[PastJob] = []
    job_ids = await list_ids(store, scope)
    for start in range(0, len(job_ids), _AT_ONCE):
        ids = job_ids[start : start + _AT_ONCE]
        names = ("started_at", "correlation_id", "order")
        replies = await store.read([("HMGET", store.keys.joborder(job_id), *names) for job_id in ids])
        for job_id, (started_at, run_id, order) in zip(ids, replies, strict=True):
            if started_at and work_master in _masters_of(order):
                jobs.append(PastJob(job_id, run_id, int(started_at), partial(load_documents, store, job_id, run_id)))
    return jobs


def _masters_of(order: str) -> Iterator[str]:
    """Yield the ids of the Work Masters of a stored order; none of one that cannot be read."""
    try:
        yield from (master.id for master in msgspec.json.decode(order, type=_OrderedMasters).work_masters or ())
    except msgspec.DecodeError:
        return
