"""The event of a transition has the same id each time, with the state right after it."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from edge.config import MqttSettings
from edge.links.mqtt import Message
from edge.model.event_types import AWAITS_PERSON_TYPE, RESPONSE_UPDATE_TYPE, STATUS_EVENT_TYPE
from edge.model.isa95 import IdCall, JobOrder, JobResponse, JobStatusEvent, OrderCall, Parameter, WorkMaster
from edge.model.job_message import OpenQuestion
from edge.model.job_state import Cause, JobState, JobStatus, SubState, state_entries
from edge.northbound.events import change_events, load_changed_job, status_event
from edge.station.job_call import JobCall
from edge.station.jobs import JobService
from edge.station.retention import Expiry, RetentionPolicy
from edge.store import changes, ended_jobs, jobs
from edge.store.changes import Change
from edge.store.client import Store
from edge.store.jobs import Job
from tests.conftest import WaitUntil
from tests.northbound.calling import SCOPE, WORK_MASTER, opened_station
from tests.northbound.test_publisher import Bench, opened_bench, order

ENDED = JobStatus(JobState.ENDED, SubState.CLOSED)
RUNNING = JobStatus(JobState.RUNNING)


def change(cause: Cause, status: JobStatus = ENDED) -> Change:
    return Change("7-0", SCOPE, "J1", cause, status, 1)


@pytest.mark.parametrize("cause", [Cause.STORE, Cause.STORE_AND_START, Cause.CANCEL, Cause.CLEAR])
def test_cause_without_transition_has_no_event(cause: Cause) -> None:
    assert status_event("/edge", change(cause), None, None) is None


def test_transition_of_a_removed_job_is_still_reported() -> None:
    event = status_event("/edge", change(Cause.STOP), None, None)
    assert event
    assert (event.id, event.type, event.subject) == (f"{SCOPE}/7-0", STATUS_EVENT_TYPE, SCOPE)
    assert event.data == JobStatusEvent(job_order=JobOrder(job_order_id="J1"), job_state=state_entries(ENDED))


async def test_the_response_has_the_state_right_after_the_change(store: Store) -> None:
    station = await opened_station(store)
    order = OrderCall(job_order=JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id=WORK_MASTER.id),)))
    service = JobService(store, station.runs, max_job_orders=10, dedupe_ms=60_000)
    begin = await changes.latest(store, [SCOPE])
    async with station.at_work(), asyncio.timeout(60):
        await service.call(JobCall(SCOPE, Cause.STORE_AND_START, order, "/mes", "1"))
        async for stored in changes.follow(store, begin):
            if stored.status.state is JobState.RUNNING:
                break
    found = await load_changed_job(store, change(Cause.STOP))
    assert found
    job, response = found
    assert job
    assert job.job_id == "J1"
    assert response
    assert response.job_state == state_entries(ENDED)


JOB = Job(order=JobOrder(job_order_id="J1"), scope=SCOPE, status=ENDED, correlation_id="R1", stored_at=1)
RESPONSE = JobResponse(job_response_id="R1", job_order_id="J1", job_state=())


@pytest.mark.parametrize(
    ("question", "kind"),
    [("OutcomeUnknown", "OutcomeUnknown"), ("AwaitsIntervention", "AwaitsIntervention"), ("tighten", "")],
)
def test_changed_response_has_an_event_and_a_wait_for_a_person_too(question: str, kind: str) -> None:
    data = (Parameter(id=question, subparameters=(Parameter(id="tighten", value="jammed"),)),)
    response = msgspec.structs.replace(RESPONSE, job_response_data=data)
    update, *waits = change_events("/edge", change(Cause.RESULT_UPDATE), JOB, response)
    assert (update.id, update.type) == (f"{SCOPE}/7-0", RESPONSE_UPDATE_TYPE)
    assert update.data == JobStatusEvent(job_order=JOB.order, job_state=state_entries(ENDED), job_response=response)
    found = [(cloud_event.id, cloud_event.type, cloud_event.data.questions) for cloud_event in waits]
    open_questions = (OpenQuestion(kind=kind, action="tighten", reason="jammed"),)
    assert found == ([(f"{SCOPE}/7-0/person", AWAITS_PERSON_TYPE, open_questions)] if kind else [])


@pytest.mark.parametrize(
    ("state", "until", "is_asked"),
    [
        (RUNNING, "2026-01-02T03:05:00.000+00:00", True),
        (RUNNING, "2026-01-02T03:04:00.000+00:00", False),  # its time has passed
        (RUNNING, None, False),  # it is confirmed
        (ENDED, "2026-01-02T03:05:00.000+00:00", False),
    ],
)
def test_intervention_that_awaits_a_second_person_is_a_question(
    state: JobStatus, until: str | None, *, is_asked: bool
) -> None:
    facts = {"kind": "skip", "subject": "tighten", "by": "anna", "reason": "seen", "waits_for_second_until": until}
    note = Parameter(
        id="1", subparameters=tuple(Parameter(id=name, value=fact) for name, fact in facts.items() if fact)
    )
    data = (Parameter(id="Interventions", subparameters=(note,)),)
    response = msgspec.structs.replace(RESPONSE, job_response_data=data)
    moved = msgspec.structs.replace(change(Cause.RESULT_UPDATE), status=state, at=1_767_323_070_000)
    _, *waits = change_events("/edge", moved, JOB, response)
    open_question = OpenQuestion(
        kind="AwaitsSecondPerson", action="tighten", reason=f"skip, asked for by anna, until {until}: seen"
    )
    assert [cloud_event.data.questions for cloud_event in waits] == ([(open_question,)] if is_asked else [])


def test_changed_response_of_a_removed_job_has_no_event() -> None:
    assert change_events("/edge", change(Cause.RESULT_UPDATE), None, None) == ()


async def test_unreadable_job_is_not_reported(store: Store) -> None:
    await store.execute("HSET", store.keys.joborder("J1"), "order", "{")
    assert await load_changed_job(store, change(Cause.STOP)) is None


FAR_FUTURE = 1 << 41


@pytest.fixture
async def bench(store: Store, mqtt: MqttSettings, unique: str) -> AsyncIterator[Bench]:
    async with opened_bench(store, mqtt, unique) as bench:
        yield bench


async def until_delivered(store: Store) -> None:
    """Wait until the result of J1 is recorded as delivered."""
    async with asyncio.timeout(60):
        while not ((job := await jobs.load(store, "J1")) and job.delivered_at):
            pass


def status_events(bench: Bench) -> list[Message]:
    return [message for message in bench.heard.messages if message.user_properties.get("type") == STATUS_EVENT_TYPE]


async def test_a_republished_event_carries_the_identical_payload(
    bench: Bench, store: Store, wait_until: WaitUntil
) -> None:
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await bench.call(Cause.START, IdCall(job_order_id="J1"))
        await bench.all_events_published()
    # Changed by hand, so that no change is noted: a repetition would show it.
    job = await jobs.load(store, "J1")
    assert job
    changed = msgspec.structs.replace(job.order, priority=9)
    await store.execute("HSET", store.keys.joborder("J1"), "order", msgspec.json.encode(changed).decode())
    await store.execute("DEL", store.keys.publisher_cursors())
    async with bench.publishing():
        await wait_until(lambda: len(status_events(bench)) == 2)
    first, again = status_events(bench)
    assert first == again


async def test_result_with_a_subscriber_counts_as_delivered(bench: Bench, store: Store) -> None:
    bench.policy = RetentionPolicy(0, "delivery")
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await until_delivered(store)


async def test_result_is_kept_until_a_client_subscribes(bench: Bench, store: Store) -> None:
    bench.policy = RetentionPolicy(0, "delivery")
    # Topics below this prefix have no subscriber.
    bench.topics = msgspec.structs.replace(bench.topics, prefix=f"{bench.topics.prefix}-unheard")
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await bench.all_published()
        job = await jobs.load(store, "J1")
        assert job
        assert job.delivered_at is None
        await Expiry(store, bench.policy).expire(job, FAR_FUTURE)
        assert await ended_jobs.oldest(store, SCOPE, 2) == ["J1"]
        await bench.session.subscribe(bench.topics.result("J1"), bench.heard.take)
        await until_delivered(store)
    assert (await ended_jobs.count_kept_results(store, SCOPE)).undelivered == 0
