"""Keep the indexes of ended jobs that stay beyond their time: their result is not delivered, or not confirmed."""

from msgspec import Struct

from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.keys import Keys
from edge.store.query import StoreQuery, query

DROPPED = "results_unconfirmed_removed"
"""The counter of results that were removed before the MES had confirmed them."""


class KeptResults(Struct, frozen=True):
    """The number of results that are kept beyond their time: not delivered, and delivered but not confirmed."""

    undelivered: int
    unconfirmed: int


def add(keys: Keys, scope: str, job_id: str, ended_at: int) -> Commit:
    """Add a job whose result is not delivered, by the instant of its end."""
    return operation("ZADD", keys.joborder_undelivered(scope), ended_at, job_id)


def deliver(keys: Keys, scope: str, job_id: str, ended_at: int) -> Commit:
    """Add a job whose result is delivered but not confirmed, by the instant of its end."""
    added = operation("ZADD", keys.joborder_unconfirmed(scope), ended_at, job_id)
    return join((operation("ZREM", keys.joborder_undelivered(scope), job_id), added))


def discard(keys: Keys, scope: str, job_id: str) -> Commit:
    """Remove a job, if it is listed."""
    listed = keys.joborder_undelivered(scope), keys.joborder_unconfirmed(scope)
    return join(operation("ZREM", key, job_id) for key in listed)


def count_dropped(keys: Keys) -> Commit:
    """Count a result that is removed before the MES has confirmed it."""
    return operation("INCR", keys.counter(DROPPED))


def query_count(keys: Keys, scope: str) -> StoreQuery[int]:
    """Return the query of the number of jobs of a scope whose result is not delivered."""
    return query(int, "ZCARD", keys.joborder_undelivered(scope))


async def count(store: Store, scope: str) -> int:
    """Count the jobs of a scope whose result is not delivered."""
    return await store.fetch(query_count(store.keys, scope))


async def counts(store: Store, scope: str) -> KeptResults:
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
