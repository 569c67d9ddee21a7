"""Replays what a test has left in a store."""

from collections.abc import AsyncIterator

from edge.station.run_replay import JobReplay, NotRecorded, RecordedRun, load_recorded, replay_recorded
from edge.store.client import Store

MOST_JOBS = 50


async def differing_replays(store: Store, *, only_ended: bool = False) -> AsyncIterator[JobReplay | NotRecorded]:
    """Yield the replays that differ, and the runs that cannot be read, of at most `MOST_JOBS` jobs of each scope.

    A run and its history are two reads: where a gateway still works, only those of ended runs fit together.
    """
    for scope in sorted(await store.execute("SMEMBERS", store.keys.active_scopes())):
        for job_id in await store.execute("ZRANGE", store.keys.joborder_list(scope), 0, MOST_JOBS - 1):
            recorded = await load_recorded(store, job_id)
            if only_ended and isinstance(recorded, RecordedRun) and not recorded.stored.run.ended:
                continue
            replayed = recorded if isinstance(recorded, NotRecorded) else replay_recorded(recorded)
            match replayed:
                case JobReplay():
                    if not replayed.is_same:
                        yield replayed
                case NotRecorded(reason):
                    if "cannot be read" in reason:
                        yield replayed
