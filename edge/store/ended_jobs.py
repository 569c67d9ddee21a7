"""The ended jobs that are still kept, in the order in which their time runs out."""

from collections.abc import Sequence

from msgspec import Struct

from edge.store.client import Store


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


async def count(store: Store, scope: str) -> int:
    """Return the number of ended jobs of a scope that are kept."""
    stored, still_open = await store.read(_counts(store, scope))
    return int(stored) - int(still_open)


async def page(store: Store, scope: str, first: int, many: int) -> EndedJobs:
    """Read the number of ended jobs, and from the index of timers up to `many` jobs; `first` 0 is the earliest.

    The index holds each ended job until its time is over, and open jobs that wait for a deadline.
    """
    keys = store.keys
    stored, still_open, job_ids, active = await store.read(
        [
            *_counts(store, scope),
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


def _counts(store: Store, scope: str) -> tuple[tuple[str, str], tuple[str, str]]:
    return ("ZCARD", store.keys.joborder_list(scope)), ("ZCARD", store.keys.joborder_open(scope))
