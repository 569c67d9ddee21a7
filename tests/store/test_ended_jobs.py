"""Ended jobs are counted by scope and read in the order in which their time runs out."""

import pytest

from edge.model.isa95 import JobOrder
from edge.model.job_state import Cause, JobState, JobStatus
from edge.store import ended_jobs, jobs, runs
from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.ended_jobs import KeptJob
from edge.store.jobs import Job

SCOPE = "station-1"


async def put(store: Store, job_id: str, due: int, state: JobState = JobState.ENDED, scope: str = SCOPE) -> Job:
    job = Job(
        order=JobOrder(job_order_id=job_id),
        scope=scope,
        status=JobStatus(state),
        correlation_id=f"c-{job_id}",
        stored_at=1,
        started_at=1,
        ended_at=2 if state is JobState.ENDED else None,
    )
    saved = jobs.save(store.keys, None, job, ((Cause.STORE, job.status),), 1)
    await store.commit(join((saved, runs.set_timer(store.keys, job_id, due))))
    return job


async def test_ended_jobs_are_read_in_the_order_of_their_timers(store: Store) -> None:
    await put(store, "late", 30)
    delivered = await put(store, "early", 10)
    await put(store, "open", 20, JobState.RUNNING)
    await put(store, "elsewhere", 40, scope="station-2")
    await store.commit(jobs.record_delivery(store.keys, delivered, 5))
    found = await ended_jobs.ended_page(store, SCOPE, 0, 10)
    assert found.kept == await ended_jobs.count_ended(store, SCOPE) == 2
    assert found.jobs == [
        KeptJob("early", SCOPE, has_ended=True, delivered_at="5"),
        KeptJob("open", SCOPE, has_ended=False),
        KeptJob("late", SCOPE, has_ended=True),
        KeptJob("elsewhere", "station-2", has_ended=True),
    ]


@pytest.mark.parametrize(("first", "expected"), [(0, ["a", "b"]), (1, ["b", "c"]), (2, ["c"]), (3, [])])
async def test_a_page_begins_where_it_is_asked_to(store: Store, first: int, expected: list[str]) -> None:
    for due, job_id in enumerate("abc"):
        await put(store, job_id, due)
    assert [job.job_id for job in (await ended_jobs.ended_page(store, SCOPE, first, 2)).jobs] == expected


async def test_a_job_with_commands_to_send_has_not_ended(store: Store) -> None:
    await put(store, "J1", 10)
    await store.commit(operation("SADD", store.keys.sfc_active_jobs(), "J1"))
    (kept_job,) = (await ended_jobs.ended_page(store, SCOPE, 0, 10)).jobs
    assert not kept_job.has_ended


async def test_a_timer_of_a_removed_job_has_no_scope(store: Store) -> None:
    await store.commit(runs.set_timer(store.keys, "gone", 10))
    found = await ended_jobs.ended_page(store, SCOPE, 0, 10)
    assert found.jobs == [KeptJob("gone", "", has_ended=False)]
    assert found.kept == 0


async def test_undelivered_jobs_are_ordered_by_end_time(store: Store) -> None:
    for name, ended_at in (("late", 30), ("early", 10), ("middle", 20)):
        await store.commit(ended_jobs.add_undelivered(store.keys, "s", name, ended_at))
    assert (await ended_jobs.count_kept_results(store, "s")).undelivered == 3
    assert await ended_jobs.oldest(store, "s", 2) == ["early", "middle"]
    assert await ended_jobs.oldest(store, "s", 0) == []
    await store.commit(ended_jobs.discard_kept(store.keys, "s", "early"))
    assert await ended_jobs.oldest(store, "s", 9) == ["middle", "late"]
