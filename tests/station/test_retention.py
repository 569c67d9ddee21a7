"""A job is kept until its result is delivered; the number of undelivered results is limited."""

from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.config import MqttSettings, Settings
from edge.config.retention import RetentionSettings
from edge.model.isa95 import JobOrder
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.station.response import job_response
from edge.station.retention import Confirmation, Deliveries, Expiry, RetentionPolicy, retention_policy
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


async def test_undelivered_result_is_kept_after_its_expiry(store: Store) -> None:
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
    assert await store.fetch(dedupe.query_removal(store.keys, "J1")) == NOW


async def test_delivery_of_a_cleared_job_is_not_confirmed(store: Store) -> None:
    job = await end(store, "J1")
    await store.commit(jobs.remove(store.keys, job, Cause.CLEAR, NOW))
    await Deliveries(store, lambda: NOW, POLICY).confirm(job)
    assert await store.execute("EXISTS", store.keys.joborder("J1")) == 0


@pytest.mark.parametrize("confirmation", ["clear", "none"])
async def test_delivery_confirmation_follows_the_setting(store: Store, confirmation: Confirmation) -> None:
    policy = replace(POLICY, confirmation=confirmation)
    job = await end(store, "J1")
    await Deliveries(store, lambda: NOW, policy).confirm(job)
    stored = await jobs.load(store, "J1")
    assert stored
    assert stored.delivered_at is None
    await Expiry(store, policy).expire(stored, NOW)
    assert (await jobs.load(store, "J1") is None) == (confirmation == "none")


async def test_undelivered_results_are_bounded_if_deletion_is_configured(store: Store) -> None:
    expiry = Expiry(store, replace(POLICY, drops_undelivered=True))
    with capture_logs() as logs:
        for number in range(1, 6):
            job = await end(store, f"J{number}", ENDED_AT + number)
            await expiry.expire(job, NOW)
    assert await undelivered.oldest(store, SCOPE, 9) == ["J2", "J3", "J4", "J5"]
    assert [(each["event"], each["log_level"]) for each in logs] == [
        ("undelivered results pile up", "warning"),
        ("result deleted undelivered", "error"),
    ]
    assert await jobs.load(store, "J1") is None


async def test_undelivered_results_are_never_deleted_by_default(store: Store) -> None:
    expiry = Expiry(store, POLICY)
    for number in range(1, 7):
        await expiry.expire(await end(store, f"J{number}", ENDED_AT + number), NOW)
    assert len(await undelivered.oldest(store, SCOPE, 9)) == 6


@pytest.mark.parametrize(
    ("url", "keys", "expected"),
    [
        ("mqtt://127.0.0.1:1883", {}, ("delivery", 10_000)),
        ("mqtt://127.0.0.1:1883", {"undelivered_full": "delete"}, ("delivery", None)),
        ("mqtt://127.0.0.1:1883", {"confirmation": "none"}, ("none", None)),
        ("", {}, ("none", None)),
        ("", {"confirmation": "clear"}, ("clear", 10_000)),
    ],
)
def test_policy_follows_the_settings(url: str, keys: dict[str, Any], expected: tuple[str, int | None]) -> None:
    """Without a broker a delivery cannot be confirmed, but Clear can."""
    policy = retention_policy(Settings(mqtt=MqttSettings(url=url), retention=RetentionSettings(**keys)))
    assert (policy.confirmation, policy.refuses_beyond) == expected
