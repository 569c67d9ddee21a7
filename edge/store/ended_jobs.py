"""The ended jobs that are still kept: in the order in which their time runs out, and those kept beyond it."""

from collections.abc import Sequence

from msgspec import Struct

from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.keys import Keys
from edge.store.query import StoreQuery, query


class KeptJob(Struct, frozen=True):
    """A job with a timer; its scope is empty if the job is removed already."""

    job_id: str
    scope: str
    has_ended: bool
    """Whether it is in an EndState and has no command left to send."""
    delivered_at: str | None = None
    """When its result was delivered, None or empty before."""
    confirmed_at: str | None = None
    """When the MES confirmed it, None or empty before."""


class EndedJobs(Struct, frozen=True):
    """How many ended jobs of a scope are kept, and a page of the index of timers, which has the jobs of all scopes."""

    kept: int
    jobs: Sequence[KeptJob]


async def count_ended(store: Store, scope: str) -> int:
    """Return the number of ended jobs of a scope that are kept."""
    stored, still_open = await store.read(_ended_counts(store, scope))
    return int(stored) - int(still_open)


async def ended_page(store: Store, scope: str, first: int, many: int) -> EndedJobs:
    """Read the number of ended jobs, and from the index of timers up to `many` jobs; `first` 0 is the earliest.

    The index holds each ended job until its time is over, and open jobs that wait for a deadline.
    """
    keys = store.keys
    stored, still_open, job_ids, active = await store.read(
        [
            *_ended_counts(store, scope),
            ("ZRANGE", keys.sfc_timers(), first, first + many - 1),
            ("SMEMBERS", keys.sfc_active_jobs()),
        ]
    )
    names = "scope", "ended_at", "delivered_at", "confirmed_at"
    found = await store.read([("HMGET", keys.joborder(identifier), *names) for identifier in job_ids])
    jobs = [
        KeptJob(job_id, of_scope or "", bool(ended_at) and job_id not in active, delivered_at, confirmed_at)
        for job_id, (of_scope, ended_at, delivered_at, confirmed_at) in zip(job_ids, found, strict=True)
    ]
    return EndedJobs(int(stored) - int(still_open), jobs)


def _ended_counts(store: Store, scope: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("ZCARD", store.keys.joborder_list(scope)), ("ZCARD", store.keys.joborder_open(scope))


DROPPED = "results_unconfirmed_removed"
"""The counter of results that were removed before the MES had confirmed them."""


class KeptResults(Struct, frozen=True):
    """The number of results that are kept beyond their time: not delivered, and delivered but not confirmed."""

    undelivered: int
    unconfirmed: int


def add_undelivered(keys: Keys, scope: str, job_id: str, ended_at: int) -> Commit:
    """Add a job whose result is not delivered, by the instant of its end."""
    return operation("ZADD", keys.joborder_undelivered(scope), ended_at, job_id)


def add_unconfirmed(keys: Keys, scope: str, job_id: str, ended_at: int) -> Commit:
    """Add a job whose result is delivered but not confirmed, by the instant of its end."""
    added = operation("ZADD", keys.joborder_unconfirmed(scope), ended_at, job_id)
    return join((operation("ZREM", keys.joborder_undelivered(scope), job_id), added))


def discard_kept(keys: Keys, scope: str, job_id: str) -> Commit:
    """Remove a job, if it is listed."""
    listed = keys.joborder_undelivered(scope), keys.joborder_unconfirmed(scope)
    return join(operation("ZREM", key, job_id) for key in listed)


def count_dropped(keys: Keys) -> Commit:
    """Count a result that is removed before the MES has confirmed it."""
    return operation("INCR", keys.counter(DROPPED))


def query_undelivered(keys: Keys, scope: str) -> StoreQuery[int]:
    """Return the query of the number of jobs of a scope whose result is not delivered."""
    return query(int, "ZCARD", keys.joborder_undelivered(scope))


async def count_kept_results(store: Store, scope: str) -> KeptResults:
    """Count the jobs of a scope that stay beyond their time."""
    found = await store.read(queries_of_counts(store.keys, scope))
    return KeptResults(*map(int, found))


def queries_of_counts(keys: Keys, scope: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the commands that count the jobs of a scope: not delivered, and not confirmed."""
    return ("ZCARD", keys.joborder_undelivered(scope)), ("ZCARD", keys.joborder_unconfirmed(scope))


async def is_listed(store: Store, scope: str, job_id: str) -> bool:
    """Return whether a job stays beyond its time because its result is not delivered."""
    return await store.execute("ZSCORE", store.keys.joborder_undelivered(scope), job_id) is not None


async def oldest(store: Store, scope: str, many: int) -> list[str]:
    """Return the ids of the jobs that ended first, of those whose result is not delivered."""
    return await _oldest(store, store.keys.joborder_undelivered(scope), many)


async def oldest_unconfirmed(store: Store, scope: str, many: int) -> list[str]:
    """Return the ids of the jobs that ended first, of those whose delivered result is not confirmed."""
    return await _oldest(store, store.keys.joborder_unconfirmed(scope), many)


async def _oldest(store: Store, key: str, many: int) -> list[str]:
    if many <= 0:
        return []
    found: list[str] = await store.execute("ZRANGE", key, 0, many - 1)
    return found
