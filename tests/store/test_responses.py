"""Responses are found in the order in which their jobs started, but for one that nobody can read."""

from edge.model.isa95 import JobOrder
from edge.model.job_state import JobState, JobStatus
from edge.station.response import job_response
from edge.store import jobs, responses, version
from edge.store.client import Store
from edge.store.jobs import Job


async def test_responses_come_in_the_order_of_their_start(store: Store) -> None:
    assert await responses.load_all(store, "s") == []
    for job_id, started_at in (("late", 2000), ("early", 1000)):
        job = Job(
            order=JobOrder(job_order_id=job_id),
            scope="s",
            status=JobStatus(JobState.RUNNING),
            correlation_id=f"{job_id}-response",
            stored_at=0,
            started_at=started_at,
        )
        await store.commit(jobs.save_response(store.keys, job, job_response(job, None)))
    assert [each.job_order_id for each in await responses.load_all(store, "s")] == ["early", "late"]
    await store.execute("HSET", store.keys.jobresponse("late-response"), version.FIELD, 99)
    assert [each.job_order_id for each in await responses.load_all(store, "s")] == ["early"]
    await store.execute("HSET", store.keys.jobresponse("late-response"), version.FIELD, 1)
    await store.execute("DEL", store.keys.jobresponse("early-response"))
    assert [each.job_order_id for each in await responses.load_all(store, "s")] == ["late"]
