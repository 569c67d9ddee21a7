"""Results are not deleted unread: a job stays until its result was delivered, in bounded number."""

from dataclasses import replace

import pytest
from structlog.testing import capture_logs

from edge.model.isa95 import JobOrder
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.station.response import job_response
from edge.station.retention import Confirmation, Deliveries, Expiry, RetentionPolicy
from edge.store import changes, dedupe, jobs, responses, undelivered
from edge.store.client import Store
from edge.store.commit import Committed, join
from edge.store.jobs import Job

SCOPE = "station-1"
ENDED_AT = 1_700_000_000_000
NOW = ENDED_AT + 100_000
POLICY = RetentionPolicy(keep_ended_ms=50_000, confirmation="delivery", max_undelivered=4, dedupe_ms=60_000)


async def end(store: Store, job_id: str, ended_at: int = ENDED_AT) -> Job:
    status = JobStatus(JobState.ENDED, SubState.COMPLETED)
    job = Job(
        order=JobOrder(job_order_id=job_id),
        scope=SCOPE,
        status=status,
        correlation_id=f"{job_id}-response",
        stored_at=ended_at,
        started_at=ended_at,
        ended_at=ended_at,
    )
    parts = (
        jobs.save(store.keys, None, job, ((Cause.COMPLETE, status),), ended_at),
        responses.save(store.keys, job, job_response(job, None)),
    )
    assert isinstance(await store.commit(join(parts)), Committed)
    return job


async def last_cause(store: Store) -> Cause:
    position = (await changes.latest(store, [SCOPE]))[SCOPE]
    return [each.cause async for each in changes.read_between(store, SCOPE, "0-0", position)][-1]


async def test_an_undelivered_result_stays_beyond_its_time(store: Store) -> None:
    job = await end(store, "J1")
    await Expiry(store, POLICY).expire(job, NOW)
    assert await jobs.load(store, "J1")
    assert await undelivered.oldest(store, SCOPE, 9) == ["J1"]


async def test_a_delivered_result_expires_with_a_tombstone(store: Store) -> None:
    job = await end(store, "J1")
    expiry, deliveries = Expiry(store, POLICY), Deliveries(store, lambda: NOW, POLICY)
    await expiry.expire(job, NOW)
    await deliveries.confirm(job)
    assert await deliveries.waiting(SCOPE, 9) == []
    assert await store.execute("ZSCORE", store.keys.sfc_timers(), "J1") == NOW
    delivered = await jobs.load(store, "J1")
    assert delivered
    assert delivered.delivered_at == NOW
    await expiry.expire(delivered, NOW)
    assert await jobs.load(store, "J1") is None
    assert await last_cause(store) is Cause.EXPIRE
    assert await dedupe.removed_at(store, "J1") == NOW


async def test_a_job_that_was_cleared_meanwhile_is_not_confirmed(store: Store) -> None:
    job = await end(store, "J1")
    await store.commit(jobs.remove(store.keys, job, Cause.CLEAR, NOW))
    await Deliveries(store, lambda: NOW, POLICY).confirm(job)
    assert await store.execute("EXISTS", store.keys.joborder("J1")) == 0


@pytest.mark.parametrize("confirmation", ["clear", "none"])
async def test_what_confirms_a_result_is_a_setting(store: Store, confirmation: Confirmation) -> None:
    policy = replace(POLICY, confirmation=confirmation)
    job = await end(store, "J1")
    await Deliveries(store, lambda: NOW, policy).confirm(job)
    stored = await jobs.load(store, "J1")
    assert stored
    assert stored.delivered_at is None
    await Expiry(store, policy).expire(stored, NOW)
    assert (await jobs.load(store, "J1") is None) == (confirmation == "none")


async def test_undelivered_results_are_bounded_with_an_alarm_before(store: Store) -> None:
    expiry = Expiry(store, POLICY)
    with capture_logs() as logs:
        for number in range(1, 6):
            job = await end(store, f"J{number}", ENDED_AT + number)
            await expiry.expire(job, NOW)
    assert await undelivered.oldest(store, SCOPE, 9) == ["J2", "J3", "J4", "J5"]
    assert [(each["event"], each["log_level"]) for each in logs] == [
        ("undelivered results pile up", "warning"),
        ("result deleted undelivered", "error"),
    ]
    assert list(expiry.problems()) == ["5 of at most 4 undelivered results kept in station-1"]
    assert await jobs.load(store, "J1") is None
