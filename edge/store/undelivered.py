"""Keep the index of ended jobs that stay beyond their time because the MES has not received their result."""

from edge.store.client import Store
from edge.store.commit import Commit, operation
from edge.store.keys import Keys
from edge.store.query import StoreQuery, query


def add(keys: Keys, scope: str, job_id: str, ended_at: int) -> Commit:
    """Add a job by the instant of its end."""
    return operation("ZADD", keys.joborder_undelivered(scope), ended_at, job_id)


def discard(keys: Keys, scope: str, job_id: str) -> Commit:
    """Remove a job, if it is listed."""
    return operation("ZREM", keys.joborder_undelivered(scope), job_id)


def query_count(keys: Keys, scope: str) -> StoreQuery[int]:
    """Return the query of the number of jobs of a scope."""
    return query(int, "ZCARD", keys.joborder_undelivered(scope))


async def count(store: Store, scope: str) -> int:
    """Count the jobs of a scope."""
    return await store.fetch(query_count(store.keys, scope))


async def oldest(store: Store, scope: str, many: int) -> list[str]:
    """Return the ids of the jobs that ended first."""
    if many <= 0:
        return []
    found: list[str] = await store.execute("ZRANGE", store.keys.joborder_undelivered(scope), 0, many - 1)
    return found
