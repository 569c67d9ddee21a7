"""A response is found by its job, by its id, and in its scope in the order of job starts."""

import msgspec
import pytest

from edge.model.action_attempt import ActionAttempt, attempts_parameter
from edge.model.isa95 import JobOrder
from edge.model.job_state import JobState, JobStatus, SubState, state_entries
from edge.station.response import job_response
from edge.store import responses
from edge.store.client import Store
from edge.store.jobs import Job


def job(job_id: str, started_at: int = 1000) -> Job:
    return Job(
        order=JobOrder(job_order_id=job_id),
        scope="s",
        status=JobStatus(JobState.RUNNING),
        correlation_id=f"c-{job_id}",
        stored_at=0,
        started_at=started_at,
    )


async def respond(store: Store, job: Job) -> None:
    await store.commit(responses.save(store.keys, job, job_response(job, None)))


async def test_a_response_is_found_by_its_job_and_by_its_id(store: Store) -> None:
    assert await responses.load(store, job("J1")) is None
    await respond(store, job("J1"))
    assert await responses.load(store, job("J1")) == job_response(job("J1"), None)
    assert await responses.find_job(store, "c-J1") == "J1"
    assert await responses.find_job(store, "c-J2") is None


async def test_a_later_response_is_whole_without_what_never_changes(store: Store) -> None:
    running = job("J1")
    await respond(store, running)
    first = await store.execute("HGETALL", store.keys.jobresponse("c-J1"))
    ended = msgspec.structs.replace(running, status=JobStatus(JobState.ENDED), ended_at=2000, revision=2)
    later = responses.save(store.keys, ended, job_response(ended, None), (), running)
    await store.commit(later)
    (written,) = [operation[2::2] for operation in later.operations if operation[0] == "HSET"]
    assert set(written) == {"_version", "rev", "response", "state"}
    second = await store.execute("HGETALL", store.keys.jobresponse("c-J1"))
    assert {name: second[name] for name in first if name not in written} == {
        "_dataschema": responses.DATASCHEMA,
        "scope": "s",
        "job_order_id": "J1",
    }
    assert await responses.load(store, ended) == job_response(ended, None)


COMPLETED = JobStatus(JobState.ENDED, SubState.COMPLETED)


async def test_the_state_of_a_response_is_stored_by_its_names(store: Store) -> None:
    ended = msgspec.structs.replace(job("J1"), status=COMPLETED, ended_at=2000)
    await respond(store, ended)
    stored = await store.execute("HGETALL", store.keys.jobresponse("c-J1"))
    assert (stored["state"], "JobState" in stored["response"]) == ("ENDED COMPLETED", False)
    response = await responses.load(store, ended)
    assert response
    assert response.job_state == state_entries(COMPLETED)


async def test_a_response_of_an_earlier_release_has_its_state_itself(store: Store) -> None:
    ended = msgspec.structs.replace(job("J1"), status=COMPLETED, ended_at=2000)
    await respond(store, ended)
    key, earlier = store.keys.jobresponse("c-J1"), job_response(ended, None)
    await store.execute("HSET", key, "response", msgspec.json.encode(earlier).decode(), "_version", "2")
    await store.execute("HDEL", key, "state")
    assert await responses.load(store, ended) == earlier


ATTEMPTS = (
    ActionAttempt("weld/1", "failed", 1_700_000_000_000, 1_700_000_000_900, "broken"),
    ActionAttempt("weld/2", "dispatched", 1_700_000_001_000, None),
    ActionAttempt("scan/1", "completed", None, 1_699_999_999_999, None, "anna", late=True, result={"code": 7}),
)


async def test_attempts_are_stored_by_the_time_since_the_start_of_the_job(store: Store) -> None:
    running = job("J1", started_at=1_700_000_000_000)
    await store.commit(responses.save(store.keys, running, job_response(running, None), ATTEMPTS))
    stored = await store.execute("HGET", store.keys.jobresponse("c-J1"), "attempts")
    assert msgspec.json.decode(stored) == [
        1_700_000_000_000,
        ["weld/1", "failed", 0, 900, "broken", "", False, None],
        ["weld/2", "dispatched", 1000, None],
        ["scan/1", "completed", None, -1, None, "anna", True, {"code": 7}],
    ]
    response = await responses.load(store, running)
    assert response
    assert response.job_response_data == (attempts_parameter(ATTEMPTS),)


async def test_attempts_of_an_earlier_release_are_read_as_they_stand(store: Store) -> None:
    """They remain when a later release writes the response without attempts, as for a run that cannot be read."""
    running = job("J1")
    await respond(store, running)
    rows = msgspec.json.encode(ATTEMPTS).decode()
    await store.execute("HSET", store.keys.jobresponse("c-J1"), "attempts", rows)
    response = await responses.load(store, running)
    assert response
    assert response.job_response_data == (attempts_parameter(ATTEMPTS),)


@pytest.mark.parametrize("correlation_id", ["list:s", ""])
async def test_correlation_id_equal_to_another_key_finds_no_job(store: Store, correlation_id: str) -> None:
    await respond(store, job("J1"))
    assert await responses.find_job(store, correlation_id) is None


async def test_responses_are_listed_in_the_order_of_their_start(store: Store) -> None:
    assert await responses.page_in_state(store, "s", JobState.RUNNING, (0, ""), 10) == []
    await respond(store, job("late", 2000))
    await respond(store, job("early", 1000))
    page = await responses.page_in_state(store, "s", JobState.RUNNING, (0, ""), 10)
    assert [response.job_order_id for _, response in page] == ["early", "late"]
