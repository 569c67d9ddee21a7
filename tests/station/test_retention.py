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
from edge.store import changes, dedupe, ended_jobs, jobs, responses
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
    return [change.cause async for change in changes.read_between(store, SCOPE, "0-0", position)][-1]


async def test_undelivered_result_is_kept_after_its_expiry(store: Store) -> None:
    job = await end(store, "J1")
    await Expiry(store, POLICY).expire(job, NOW)
    assert await jobs.load(store, "J1")
    assert await ended_jobs.oldest(store, SCOPE, 9) == ["J1"]


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
    assert await ended_jobs.oldest(store, SCOPE, 9) == ["J2", "J3", "J4", "J5"]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [
        ("undelivered results above half of limit", "warning"),
        ("result deleted undelivered", "error"),
    ]
    assert await jobs.load(store, "J1") is None


async def test_undelivered_results_are_never_deleted_by_default(store: Store) -> None:
    expiry = Expiry(store, POLICY)
    for number in range(1, 7):
        await expiry.expire(await end(store, f"J{number}", ENDED_AT + number), NOW)
    assert len(await ended_jobs.oldest(store, SCOPE, 9)) == 6


@pytest.mark.parametrize(
    ("url", "keys", "expected"),
    [
        ("mqtt://127.0.0.1:1883", {}, ("mes", 10_000)),
        ("mqtt://127.0.0.1:1883", {"undelivered_full": "delete"}, ("mes", None)),
        ("mqtt://127.0.0.1:1883", {"confirmation": "delivery"}, ("delivery", 10_000)),
        ("mqtt://127.0.0.1:1883", {"confirmation": "none"}, ("none", None)),
        ("", {}, ("mes", None)),
        ("", {"confirmation": "delivery"}, ("none", None)),
        ("", {"confirmation": "clear"}, ("clear", 10_000)),
    ],
)
def test_policy_follows_the_settings(url: str, keys: dict[str, Any], expected: tuple[str, int | None]) -> None:
    """Without a broker a delivery cannot be confirmed, but Clear can."""
    policy = retention_policy(Settings(mqtt=MqttSettings(url=url), retention=RetentionSettings(**keys)))
    assert (policy.confirmation, policy.refuses_beyond) == expected


MES = replace(POLICY, confirmation="mes")


async def _expired(store: Store, job_id: str, policy: RetentionPolicy, ended_at: int, *, delivered: bool) -> None:
    """Store an ended job, its result delivered or not, whose time is over."""
    job = await end(store, job_id, ended_at)
    if delivered:
        await Deliveries(store, lambda: NOW, policy).confirm(job)
    await Expiry(store, policy).expire(await _load(store, job_id), NOW)


async def _load(store: Store, job_id: str) -> Job:
    job = await jobs.load(store, job_id)
    assert job
    return job


async def test_delivered_result_stays_until_the_mes_confirms_it(store: Store) -> None:
    deliveries = Deliveries(store, lambda: NOW, MES)
    await _expired(store, "J1", MES, ENDED_AT, delivered=True)
    assert await ended_jobs.oldest_unconfirmed(store, SCOPE, 9) == ["J1"]
    assert (await ended_jobs.count_kept_results(store, SCOPE)).undelivered == 0
    assert await deliveries.acknowledge(SCOPE, ["J1", "none", "joborder:x"]) == ["J1"]
    assert await store.execute("ZSCORE", store.keys.sfc_timers(), "J1") == NOW
    await Expiry(store, MES).expire(await _load(store, "J1"), NOW)
    assert await jobs.load(store, "J1") is None
    assert await ended_jobs.count_kept_results(store, SCOPE) == ended_jobs.KeptResults(0, 0)


async def test_late_delivery_ends_only_the_refusal_of_orders(store: Store) -> None:
    await _expired(store, "J1", MES, ENDED_AT, delivered=False)
    assert await ended_jobs.count_kept_results(store, SCOPE) == ended_jobs.KeptResults(1, 0)
    await Deliveries(store, lambda: NOW, MES).confirm(await _load(store, "J1"))
    assert await ended_jobs.count_kept_results(store, SCOPE) == ended_jobs.KeptResults(0, 1)


async def test_result_that_was_asked_for_may_go_after_ten_minutes(store: Store) -> None:
    """The answer may be lost: until then the MES can ask again."""
    await _expired(store, "J1", MES, ENDED_AT, delivered=True)
    response = await responses.load(store, await _load(store, "J1"))
    assert response
    await Deliveries(store, lambda: NOW, MES).record_request([response])
    assert (await _load(store, "J1")).confirmed_at == NOW
    assert await store.execute("ZSCORE", store.keys.sfc_timers(), "J1") == NOW + 600_000


async def test_request_for_an_older_form_of_a_result_confirms_nothing(store: Store) -> None:
    await _expired(store, "J1", MES, ENDED_AT, delivered=True)
    response = await responses.load(store, await _load(store, "J1"))
    assert response
    await Deliveries(store, lambda: NOW, MES).record_request([replace(response, job_response_data=())])
    assert (await _load(store, "J1")).confirmed_at is None


@pytest.mark.parametrize(
    ("confirmation", "expected"), [("mes", NOW), ("delivery", NOW), ("clear", None), ("none", None)]
)
async def test_request_confirms_by_the_setting(store: Store, confirmation: Confirmation, expected: int | None) -> None:
    job = await end(store, "J1")
    response = await responses.load(store, job)
    assert response
    await Deliveries(store, lambda: NOW, replace(POLICY, confirmation=confirmation)).record_request([response])
    assert (await _load(store, "J1")).confirmed_at == expected


async def test_change_of_a_confirmed_result_has_to_be_confirmed_again(store: Store) -> None:
    job = await end(store, "J1")
    deliveries = Deliveries(store, lambda: NOW, MES)
    await deliveries.confirm(job)
    await deliveries.record(job)
    changed = replace(job, revision=job.revision + 1)
    await store.commit(jobs.save(store.keys, job, changed, ((Cause.RESULT_UPDATE, job.status),), NOW))
    stored = await _load(store, "J1")
    assert (stored.delivered_at, stored.confirmed_at) == (None, None)


async def test_delivered_results_are_dropped_first_and_counted(store: Store) -> None:
    for number in range(1, 4):
        await _expired(store, f"U{number}", MES, ENDED_AT + number, delivered=False)
    for number in range(4, 8):
        await _expired(store, f"D{number}", MES, ENDED_AT + number, delivered=True)
    # Four are kept at most: the undelivered ones, though they are the oldest, and the newest of the others.
    assert await ended_jobs.oldest(store, SCOPE, 9) == ["U1", "U2", "U3"]
    assert await ended_jobs.oldest_unconfirmed(store, SCOPE, 9) == ["D7"]
    assert await store.execute("GET", store.keys.counter(ended_jobs.DROPPED)) == "3"


async def test_gateway_without_a_broker_refuses_no_order(store: Store) -> None:
    """Nothing can be delivered there: beyond the limit the oldest go."""
    policy = replace(MES, delivers=False)
    assert policy.refuses_beyond is None
    for number in range(6):
        await _expired(store, f"J{number}", policy, ENDED_AT + number, delivered=False)
    assert await ended_jobs.count_kept_results(store, SCOPE) == ended_jobs.KeptResults(0, 4)
    assert await ended_jobs.oldest_unconfirmed(store, SCOPE, 9) == ["J2", "J3", "J4", "J5"]
