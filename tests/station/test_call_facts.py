"""The data of a call are read in one round trip; a repeated call needs only its earlier answer."""

import pytest

from edge.errors import EdgeError
from edge.model.isa95 import JobOrder, WorkMaster
from edge.model.job_state import Cause, JobState
from edge.station.call_facts import CallIdentity, OrderFacts, read_given, read_job, read_order_facts
from edge.store import dedupe
from edge.store.client import Store
from edge.store.jobs import Job
from tests.station.plant import SCOPE, Plant, order

NEW = CallIdentity("/mes", "call-1", SCOPE, None)


async def reads(store: Store) -> int:
    """Return how many read events of clients the server has counted."""
    info = await store.execute("INFO", "stats")
    return int(info["total_reads_processed"])


async def test_facts_of_an_order_take_one_round_trip(store: Store) -> None:
    asked = JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id="linear"),))
    before = await reads(store)
    facts = await read_order_facts(store, NEW, asked, None)
    assert isinstance(facts, OrderFacts)
    # The other tests have no connection that calls meanwhile; the second INFO is a read event as well.
    assert await reads(store) - before <= 2
    assert (facts.before, facts.removed_at, facts.open_jobs, facts.recipe) == (None, None, 0, None)


async def test_job_is_read_with_its_call(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    job = await read_job(plant.store, NEW, "J1")
    assert isinstance(job, Job)
    assert job.status.state is JobState.NOT_ALLOWED_TO_START


@pytest.mark.parametrize("transaction", [None, "t-1"])
async def test_answer_given_before_is_returned_although_the_job_is_unreadable(
    store: Store, transaction: str | None
) -> None:
    identity = CallIdentity("/mes", "call-1", SCOPE, transaction)
    assert await read_given(store, identity) is None
    await store.execute("HSET", store.keys.joborder("J1"), "_version", 99)
    with pytest.raises(EdgeError, match="version 99"):
        await read_job(store, identity, "J1")
    await store.commit(dedupe.mark(store.keys, "/mes", "call-1", "given", 1000))
    assert await read_job(store, identity, "J1") == "given"
    assert await read_order_facts(store, identity, JobOrder(job_order_id="J1"), None) == "given"
