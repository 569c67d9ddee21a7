"""Replays what a test has left in a store."""

from collections.abc import AsyncIterator

from edge.station.stored_job import JobReplay, RecordedRun, load_recorded, replay_recorded
from edge.store.client import Store

MOST_JOBS = 50


async def differing_replays(store: Store, *, only_ended: bool = False) -> AsyncIterator[JobReplay]:
    """Yield the replays that differ, of at most `MOST_JOBS` jobs of each scope; what cannot be read is left out.

    A run and its history are two reads: where a gateway still works, only those of ended runs fit together.
    """
    for scope in sorted(await store.execute("SMEMBERS", store.keys.active_scopes())):
        for job_id in await store.execute("ZRANGE", store.keys.joborder_list(scope), 0, MOST_JOBS - 1):
            recorded = await load_recorded(store, job_id)
            if only_ended and isinstance(recorded, RecordedRun) and not recorded.stored.run.ended:
                continue
            replayed = replay_recorded(recorded) if isinstance(recorded, RecordedRun) else None
            if isinstance(replayed, JobReplay) and not replayed.is_same:
                yield replayed
