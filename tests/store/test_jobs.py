"""A job is stored as a readable document, with its indexes."""

from datetime import UTC, datetime

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edge.model.isa95 import JobOrder, JobResponse, LocalizedText, Parameter, PhysicalAsset, WorkMaster
from edge.model.job_state import NEW, Cause, JobState, JobStatus, SubState
from edge.store import jobs, responses
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from edge.store.jobs import Job

SCOPE = "station-1"
NOW = 1_700_000_000_000
FULL = Job(
    order=JobOrder(
        job_order_id="J1",
        work_master_id=(WorkMaster(id="axle", data={"steps": []}, dataschema="x"),),
        start_time=datetime(2026, 1, 2, 3, 4, 5, 678000, UTC),
        priority=-3,
        job_order_parameters=(Parameter(id="torque", value=12.5, subparameters=(Parameter(id="a", value=[1, "x"]),)),),
    ),
    scope=SCOPE,
    status=JobStatus(JobState.ENDED, SubState.COMPLETED),
    correlation_id="c",
    comment=(LocalizedText(text="größe", locale="de"),),
    stored_at=NOW,
    started_at=NOW + 1,
    ended_at=NOW + 2,
    error='says "no"',
)


def job(job_id: str = "J1", priority: int | None = None) -> Job:
    return Job(
        order=JobOrder(job_order_id=job_id, priority=priority),
        scope=SCOPE,
        status=NEW[Cause.STORE],
        correlation_id=f"c-{job_id}",
        stored_at=NOW,
    )


def moved(before: Job, **fields: object) -> Job:
    return msgspec.structs.replace(before, revision=before.revision + 1, **fields)


async def save(store: Store, before: Job | None, after: Job) -> None:
    assert await store.commit(jobs.save(store.keys, before, after, (), NOW)) == Committed()


async def test_every_field_of_a_job_is_read_back(store: Store) -> None:
    await save(store, None, FULL)
    assert await jobs.load(store, "J1") == FULL


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=st.text(st.characters(exclude_categories=["Cs"]), min_size=1),
    value=st.integers() | st.floats(allow_nan=False, allow_infinity=False),
)
async def test_any_text_and_number_of_an_order_is_read_back(store: Store, text: str, value: float) -> None:
    await store.execute("DEL", store.keys.joborder("J1"))
    given_job = msgspec.structs.replace(
        job(), order=JobOrder(job_order_id="J1", job_order_parameters=(Parameter(id=text, value=value),)), error=text
    )
    await save(store, None, given_job)
    assert await jobs.load(store, "J1") == given_job


async def test_stored_hash_has_readable_fields(store: Store) -> None:
    await save(store, None, FULL)
    fields = await store.execute("HGETALL", store.keys.joborder("J1"))
    assert (fields["state"], fields["substate"], fields["scope"], fields["rev"]) == ("ENDED", "COMPLETED", SCOPE, "1")
    assert fields["_dataschema"] == jobs.DATASCHEMA


async def test_absent_job_is_read_as_none(store: Store) -> None:
    assert await jobs.load(store, "J1") is None


async def test_a_job_is_not_stored_over_another(store: Store) -> None:
    await save(store, None, job())
    assert await store.commit(jobs.save(store.keys, None, job(), (), NOW)) == Stale(store.keys.joborder("J1"))


async def test_concurrently_changed_job_is_not_written(store: Store) -> None:
    await save(store, None, job())
    await save(store, job(), moved(job(), error="first"))
    late = jobs.save(store.keys, job(), moved(job(), error="second"), (), NOW)
    assert await store.commit(late) == Stale(store.keys.joborder("J1"))


async def test_a_cleared_trace_is_written_although_a_new_job_needs_none(store: Store) -> None:
    traced = msgspec.structs.replace(job(), trace={"traceparent": "00-1-2-01"}, causation_id="e-1")
    await save(store, None, traced)
    plain = moved(traced, trace={}, causation_id="")
    await save(store, traced, plain)
    assert await jobs.load(store, "J1") == plain

    await save(store, None, job("J2"))
    stored = await store.execute("HGETALL", store.keys.joborder("J2"))
    assert stored.keys().isdisjoint({"trace", "causation_id", "early"})
    assert await jobs.load(store, "J2") == job("J2")


def test_only_what_changed_is_written(store: Store) -> None:
    commit = jobs.save(store.keys, FULL, moved(FULL, error="other"), (), NOW)
    (written,) = [operation[2::2] for operation in commit.operations if operation[0] == "HSET"]
    assert set(written) == {"rev", "error"}


async def test_jobs_are_listed_by_priority_the_highest_first(store: Store) -> None:
    for job_id, priority in (("low", 1), ("high", 9), ("none", None), ("below", -5)):
        await save(store, None, job(job_id, priority))
    assert await jobs.list_ids(store, SCOPE) == ["high", "low", "none", "below"]
    raised = moved(job("low", 1), order=JobOrder(job_order_id="low", priority=10))
    await save(store, job("low", 1), raised)
    assert (await jobs.list_ids(store, SCOPE))[0] == "low"


async def test_ended_job_is_not_open_but_still_listed(store: Store) -> None:
    await save(store, None, job())
    assert await jobs.count_open(store, SCOPE) == 1
    await save(store, job(), moved(job(), status=JobStatus(JobState.ABORTED)))
    assert await jobs.count_open(store, SCOPE) == 0
    assert await jobs.list_ids(store, SCOPE) == ["J1"]


async def test_removed_job_leaves_only_its_change(store: Store) -> None:
    await save(store, None, job())
    await store.commit(responses.save(store.keys, job(), JobResponse(job_response_id="c-J1", job_order_id="J1")))
    await store.execute("HSET", store.keys.sfc_execution("J1"), "rev", "1")
    await store.execute("ZADD", store.keys.sfc_timers(), NOW, "J1")
    assert await store.commit(jobs.remove(store.keys, job(), Cause.CANCEL, NOW)) == Committed()
    left = await store.execute("KEYS", f"{store.keys.prefix}:*")
    keys = store.keys
    changed = {keys.active_scopes(), keys.joborder_changes(SCOPE)}
    assert set(left) - {keys.store_version()} == changed


async def test_concurrently_changed_job_is_not_removed(store: Store) -> None:
    await save(store, None, job())
    await save(store, job(), moved(job()))
    assert isinstance(await store.commit(jobs.remove(store.keys, job(), Cause.CANCEL, NOW)), Stale)
    assert await jobs.load(store, "J1") is not None


async def test_unreadable_job_does_not_hide_others(store: Store) -> None:
    for job_id in ("J1", "J2"):
        await save(store, None, moved(job(job_id), status=JobStatus(JobState.ALLOWED_TO_START)))
    await store.execute("HSET", store.keys.joborder("J1"), "order", "{")
    assert [item.job_id for item in await jobs.load_all(store, SCOPE)] == ["J2"]
    assert [item.job_id for item in await jobs.load_allowed(store, ["J1", "J2"])] == ["J2"]


async def test_orders_are_found_by_a_text_in_any_case(store: Store) -> None:
    for job_id, asset in (("J1", 'W"Ä1'), ("J2", "W2"), ("J3", "W3")):
        about = JobOrder(job_order_id=job_id, physical_asset_requirements=(PhysicalAsset(id=asset),))
        await save(store, None, moved(job(job_id), order=about))
    await store.execute("HSET", store.keys.joborder("J3"), "order", '{"W')
    ids = ["J1", "J2", "J3", "gone"]
    assert [found.job_order_id for found in await jobs.find_orders(store, ids, "w")] == ["J1", "J2"]
    assert [found.job_order_id for found in await jobs.find_orders(store, ids, 'w"ä')] == ["J1"]
    assert await jobs.find_orders(store, [], "w") == []


async def test_job_stored_with_the_id_of_a_removed_one_stays_as_it_is(store: Store) -> None:
    """A process that stood still after reading a job removed the later one, or confirmed its result."""
    removed = msgspec.structs.replace(FULL, correlation_id="removed")
    await save(store, None, FULL)
    for late in (
        jobs.remove(store.keys, removed, Cause.EXPIRE, NOW),
        jobs.record_delivery(store.keys, removed, NOW),
        jobs.save(store.keys, removed, moved(removed, error="late"), (), NOW),
    ):
        assert isinstance(await store.commit(late), Stale)
    assert await jobs.load(store, "J1") == FULL


async def test_statuses_of_many_jobs_are_complete_and_ordered(store: Store) -> None:
    for number in range(260):
        await save(store, None, job(f"J{number}", priority=number))
    statuses = await jobs.load_statuses(store, SCOPE)
    assert list(statuses) == [f"J{number}" for number in reversed(range(260))]
    assert set(statuses.values()) == {NEW[Cause.STORE]}


def test_job_in_an_outdated_form_is_written_whole(store: Store) -> None:
    outdated = msgspec.structs.replace(FULL, outdated=True)
    commit = jobs.save(store.keys, outdated, moved(outdated, error="other"), (), NOW)
    (written,) = [operation[2::2] for operation in commit.operations if operation[0] == "HSET"]
    whole = jobs.save(store.keys, None, FULL, (), NOW)
    assert set(written) >= set(next(operation[2::2] for operation in whole.operations if operation[0] == "HSET"))
