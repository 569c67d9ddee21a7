"""The runs: each a hash of small fields, of which a step rewrites only what it changed."""

from collections.abc import Mapping

import msgspec

from edge.sfc.run import Run, changed_fields, decode, encode, waits
from edge.store.client import Store
from edge.store.commit import Commit, Revision, fields, join, operation, spread
from edge.store.keys import Keys

DATASCHEMA = "https://aschamberger.github.io/schemas/microdcs/sfc-execution/v2.0.0/"
_OWN_FIELDS = ("rev", "_dataschema", "recipe")


class StoredRun(msgspec.Struct, frozen=True):
    """A run as it is stored; `recipe` is the JSON text it started with and keeps.

    The first `revision` of a run is the instant of its start, and each decision adds one: no two runs of a job that
    was removed and stored again ever have the same, so that what is held of one is never taken for the other.
    """

    run: Run
    revision: int
    recipe: str


def create(keys: Keys, started: StoredRun) -> Commit:
    """Write a run that starts, in place of any earlier run of the same job."""
    run = started.run
    key = keys.sfc_execution(run.job_id)
    own = {"rev": str(started.revision), "_dataschema": DATASCHEMA, "recipe": started.recipe}
    return join(
        (
            operation("DEL", key),
            spread("HSET", (key,), fields(own | encode(run))),
            operation("SADD", keys.sfc_active_jobs(), run.job_id),
            _index_waits(keys, run.scope, run.job_id, {}, waits(run)),
        )
    )


def update(keys: Keys, before: StoredRun, run: Run) -> Commit:
    """Write what a decision changed of a run; guarded by the revision it was decided on."""
    key = keys.sfc_execution(run.job_id)
    written, removed = changed_fields(before.run, run)
    return join(
        (
            unchanged(keys, before),
            spread("HSET", (key,), fields({"rev": str(before.revision + 1)} | written)),
            spread("HDEL", (key,), removed),
            _index_waits(keys, run.scope, run.job_id, waits(before.run), waits(run)),
        )
    )


def unchanged(keys: Keys, stored: StoredRun) -> Commit:
    """Demand that nobody wrote the run since it was read."""
    return Commit(guards=(Revision(keys.sfc_execution(stored.run.job_id), stored.revision),))


def finish(keys: Keys, job_id: str) -> Commit:
    """Take a job off the active ones."""
    return operation("SREM", keys.sfc_active_jobs(), job_id)


def set_timer(keys: Keys, job_id: str, due: int | None) -> Commit:
    """Set the instant at which a job wants attention; None for never."""
    if due is None:
        return operation("ZREM", keys.sfc_timers(), job_id)
    return operation("ZADD", keys.sfc_timers(), due, job_id)


def _index_waits(keys: Keys, scope: str, job_id: str, before: Mapping[str, int], after: Mapping[str, int]) -> Commit:
    return join(
        operation("ZADD", keys.sfc_waits(scope, type_id), after[type_id], job_id)
        if type_id in after
        else operation("ZREM", keys.sfc_waits(scope, type_id), job_id)
        for type_id in sorted(before.keys() | after.keys())
        if before.get(type_id) != after.get(type_id)
    )


async def load(store: Store, job_id: str) -> StoredRun | None:
    """Read the run of a job; None when it has none."""
    found: dict[str, str] = await store.execute("HGETALL", store.keys.sfc_execution(job_id))
    if not found:
        return None
    run = decode({name: text for name, text in found.items() if name not in _OWN_FIELDS})
    return StoredRun(run, int(found["rev"]), found["recipe"])


async def active_jobs(store: Store) -> list[str]:
    """Give the jobs whose run has not ended."""
    jobs = await store.execute("SMEMBERS", store.keys.sfc_active_jobs())
    return sorted(jobs)


async def longest_waiting(store: Store, scope: str, type_id: str) -> str | None:
    """Give the job that has waited longest for an event of a type; None when nobody waits."""
    jobs = await store.execute("ZRANGE", store.keys.sfc_waits(scope, type_id), 0, 0)
    return str(jobs[0]) if jobs else None


async def due(store: Store, now: int, limit: int) -> list[str]:
    """Give the jobs whose instant has come, the longest overdue first."""
    jobs: list[str] = await store.execute("ZRANGE", store.keys.sfc_timers(), "-inf", now, "BYSCORE", "LIMIT", 0, limit)
    return jobs


async def next_due(store: Store) -> int | None:
    """Give the earliest instant at which some job wants attention."""
    reply = await store.execute("ZRANGE", store.keys.sfc_timers(), 0, 0, "WITHSCORES")
    return int(float(reply[0][1])) if reply else None
