"""Reads the figures of the store for metrics: jobs by state, waiting work, dead letters, memory."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from edge.model.job_state import JobState
from edge.store import dead_letters, ended_jobs
from edge.store.client import Store
from edge.store.reads import entries
from edge.store.server_check import MemoryUsage

_BATCH = 500


class ScopeGauges(Struct, frozen=True):
    """The figures of a scope. Instants are milliseconds since the epoch, None when nothing waits.

    `open_jobs` counts the jobs that have not ended, by state; `ended_jobs` those that have ended and are still kept.
    `work` counts unacknowledged entries, the oldest since `work_since`; `unpublished_since` is the time of the oldest
    change that was not published to the MES.
    """

    open_jobs: Mapping[JobState, int]
    ended_jobs: int
    work: int
    work_since: int | None
    unpublished_since: int | None


class Gauges(Struct, frozen=True):
    """All figures of one reading; `refused` counts messages since the store was created."""

    memory: MemoryUsage
    scopes: Mapping[str, ScopeGauges]
    dead_letters: int
    refused: int
    removed_unconfirmed: int = 0
    """The results that were removed before the MES had confirmed them, since the store was created."""


async def read_gauges(store: Store, scopes: Sequence[str], batch: int = _BATCH) -> Gauges:
    """Read all figures in two round trips and one for each `batch` open jobs. Raises Unavailable."""
    keys = store.keys
    memory, letters, late, count, removed, cursors, *rest = await store.read(
        [
            ("INFO", "memory"),
            *dead_letters.queries_of_count(keys),
            ("GET", keys.counter(dead_letters.REFUSED_COUNTER)),
            ("GET", keys.counter(ended_jobs.DROPPED)),
            ("HGETALL", keys.publisher_cursors()),
            *(command for scope in scopes for command in _of_scope(store, scope)),
        ]
    )
    found = {scope: rest[4 * at : 4 * at + 4] for at, scope in enumerate(scopes)}
    unpublished = await _oldest_unpublished(store, {scope: cursors[scope] for scope in scopes if scope in cursors})
    return Gauges(
        memory=MemoryUsage(int(memory["used_memory"]), int(memory["maxmemory"])),
        scopes={
            scope: ScopeGauges(
                open_jobs=await _states(store, ids, batch),
                ended_jobs=max(0, stored - len(ids)),
                work=work,
                work_since=_instant(oldest),
                unpublished_since=unpublished.get(scope),
            )
            for scope, (ids, stored, work, oldest) in found.items()
        },
        dead_letters=letters + late,
        refused=int(count or 0),
        removed_unconfirmed=int(removed or 0),
    )


def _of_scope(store: Store, scope: str) -> tuple[tuple[str | int, ...], ...]:
    keys = store.keys
    return (
        ("ZRANGE", keys.joborder_open(scope), 0, -1),
        ("ZCARD", keys.joborder_list(scope)),
        ("XLEN", keys.sfc_work(scope)),
        ("XRANGE", keys.sfc_work(scope), "-", "+", "COUNT", 1),
    )


async def _states(store: Store, job_ids: Sequence[str], batch: int) -> Mapping[JobState, int]:
    counter: Counter[JobState] = Counter()
    for at in range(0, len(job_ids), batch):
        # In parts: measuring must not delay decisions.
        states = await store.read(
            [("HGET", store.keys.joborder(job_id), "state") for job_id in job_ids[at : at + batch]]
        )
        # A job that was removed in between has no state.
        counter.update(JobState[state] for state in states if state in JobState.__members__)
    return counter


async def _oldest_unpublished(store: Store, cursors: Mapping[str, str]) -> Mapping[str, int]:
    """Return for each scope with a publisher the time of its oldest unpublished change."""
    replies = await store.read(
        [
            ("XRANGE", store.keys.joborder_changes(scope), f"({position}", "+", "COUNT", 1)
            for scope, position in cursors.items()
        ]
    )
    found = {scope: _instant(reply) for scope, reply in zip(cursors, replies, strict=True)}
    return {scope: at for scope, at in found.items() if at is not None}


def _instant(reply: Any) -> int | None:
    """Return the instant at which the first entry of a reply was added, by its id."""
    return next((int(entry.entry_id.partition("-")[0]) for entry in entries(reply)), None)
