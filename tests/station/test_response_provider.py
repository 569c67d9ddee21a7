"""Job responses are found within a scope, by job order or by state."""

import msgspec
import pytest

from edge.model.isa95 import JobOrder, LocalizedText, ReturnStatus, State
from edge.model.job_state import Cause, JobState, JobStatus, SubState, state_entries
from edge.station.response import FoundResponses, PageLimit, ResponseProvider, job_response
from edge.store import jobs, responses
from edge.store.client import Store
from edge.store.commit import Committed, join
from edge.store.jobs import Job

COMPLETED = JobStatus(JobState.ENDED, SubState.COMPLETED)
CLOSED = JobStatus(JobState.ENDED, SubState.CLOSED)
NOW = 1_750_000_000_000


async def keep(store: Store, job_id: str, status: JobStatus, scope: str = "s", *, started: bool = True) -> None:
    job = Job(
        order=JobOrder(job_order_id=job_id),
        scope=scope,
        status=status,
        correlation_id=f"{job_id}-response",
        stored_at=NOW,
        started_at=NOW,
    )
    parts = [jobs.save(store.keys, None, job, ((Cause.STORE, status),), NOW)]
    if started:
        parts.append(responses.save(store.keys, job, job_response(job, None)))
    assert isinstance(await store.commit(join(parts)), Committed)


def top(state: JobState) -> tuple[State, ...]:
    return state_entries(JobStatus(state))


async def ids(found: FoundResponses) -> set[str]:
    assert found.status is ReturnStatus.NO_ERROR
    return {response.job_order_id for response in found.responses}


async def test_a_response_is_found_by_its_job_order(store: Store) -> None:
    await keep(store, "job-1", COMPLETED)
    found = await ResponseProvider(store).of_job("s", "job-1")
    assert (found.status, found.responses[0].job_state) == (ReturnStatus.NO_ERROR, state_entries(COMPLETED))


@pytest.mark.parametrize("job_id", ["job-2", "elsewhere", "", "list:s", "x" * 1000])
async def test_job_of_another_scope_is_unknown(store: Store, job_id: str) -> None:
    await keep(store, "elsewhere", COMPLETED, "other")
    found = await ResponseProvider(store).of_job("s", job_id)
    assert (found.status, found.responses) == (ReturnStatus.UNKNOWN_JOB_ORDER_ID, ())


async def test_a_job_that_has_not_started_has_no_response(store: Store) -> None:
    await keep(store, "job-1", JobStatus(JobState.ALLOWED_TO_START, SubState.READY), started=False)
    found = await ResponseProvider(store).of_job("s", "job-1")
    assert (found.status, found.responses) == (ReturnStatus.INVALID_JOB_ORDER_STATUS, ())


async def test_responses_are_found_by_state_and_sub_state(store: Store) -> None:
    await keep(store, "done", COMPLETED)
    await keep(store, "stopped", CLOSED)
    await keep(store, "running", JobStatus(JobState.RUNNING))
    await keep(store, "elsewhere", COMPLETED, "other")
    provider = ResponseProvider(store)
    assert await ids(await provider.in_state("s", top(JobState.ENDED))) == {"done", "stopped"}
    assert await ids(await provider.in_state("s", state_entries(CLOSED))) == {"stopped"}
    assert await ids(await provider.in_state("s", top(JobState.RUNNING))) == {"running"}
    assert await ids(await provider.in_state("s", top(JobState.ABORTED))) == set()
    assert await ids(await provider.in_state("nowhere", top(JobState.ENDED))) == set()


async def test_state_query_without_a_top_level_state_is_refused(store: Store) -> None:
    sub_state = state_entries(CLOSED)[1:]
    for state in ((), sub_state):
        found = await ResponseProvider(store).in_state("s", state)
        assert found.status is ReturnStatus.INVALID_REQUEST
    text_only = (State(state_text=LocalizedText(text="Ended"), state_number=5),)
    assert (await ResponseProvider(store).in_state("s", text_only)).status is ReturnStatus.NO_ERROR


async def test_response_is_found_by_the_state_from_the_index(store: Store) -> None:
    await keep(store, "done", COMPLETED)
    await keep(store, "stopped", CLOSED)
    published = tuple(msgspec.structs.replace(entry, browse_path=None) for entry in state_entries(CLOSED))
    assert await ids(await ResponseProvider(store).in_state("s", published)) == {"stopped"}


async def test_responses_are_returned_in_pages(store: Store) -> None:
    names = {f"job-{number:02}" for number in range(11)}
    for name in names:
        await keep(store, name, COMPLETED)
    await keep(store, "stopped", CLOSED)
    provider, query = ResponseProvider(store), state_entries(COMPLETED)
    pages = [await provider.in_state("s", query, limit=PageLimit(4, 1 << 20))]
    while pages[-1].next:
        pages.append(await provider.in_state("s", query, pages[-1].next, PageLimit(4, 1 << 20)))
    assert [len(page.responses) for page in pages] == [4, 4, 3]
    assert set().union(*[await ids(page) for page in pages]) == names
    small = await provider.in_state("s", query, limit=PageLimit(100, 1))
    assert (len(small.responses), bool(small.next)) == (1, True)
    assert (await provider.in_state("s", query, "nonsense")).status is ReturnStatus.INVALID_REQUEST


async def test_the_index_by_state_of_an_earlier_release_is_rebuilt(store: Store) -> None:
    for name in ("one", "two"):
        await keep(store, name, COMPLETED)
    await store.execute("DEL", store.keys.jobresponse_state("s", "ENDED"))
    assert await ids(await ResponseProvider(store).in_state("s", top(JobState.ENDED))) == {"one", "two"}
