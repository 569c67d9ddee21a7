"""The data of a call are read in one round trip; a repeated call needs only its earlier answer."""

import pytest

from edge.foundation.errors import EdgeError
from edge.model.isa95 import JobOrder, WorkMaster
from edge.model.job_state import Cause, JobState
from edge.station.call_facts import CallIdentity, OrderFacts, read_answer, read_job, read_order_facts
from edge.station.recipe_lookup import FoundRecipe, RecipeLookup
from edge.station.runs import compiled
from edge.store import dedupe
from edge.store.bulk_reads import scan_keys
from edge.store.client import Store
from edge.store.jobs import Job
from tests.station.plant import SCOPE, Plant, order
from tests.store.servers import reads_of

NEW = CallIdentity("/mes", "call-1", SCOPE, None)


async def test_facts_of_an_order_take_one_round_trip(store: Store) -> None:
    asked = JobOrder(job_order_id="J1", work_master_id=(WorkMaster(id="linear"),))
    before = await reads_of(store)
    facts = await read_order_facts(store, NEW, asked, None)
    assert isinstance(facts, OrderFacts)
    # The other tests have no connection that calls meanwhile; the second INFO is a read event as well.
    assert await reads_of(store) - before <= 2
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
    assert await read_answer(store, identity) is None
    await store.execute("HSET", store.keys.joborder("J1"), "_version", 99)
    with pytest.raises(EdgeError, match="version 99"):
        await read_job(store, identity, "J1")
    await store.commit(dedupe.mark(store.keys, "/mes", "call-1", "given", 1000))
    assert await read_job(store, identity, "J1") == "given"
    assert await read_order_facts(store, identity, JobOrder(job_order_id="J1"), None) == "given"


async def test_recipe_that_is_not_cached_takes_a_second_round_trip(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    recipes = RecipeLookup(plant.store, compiled)
    asked = order("J2")
    trips = []
    for _ in range(2):
        before = await reads_of(plant.store)
        facts = await read_order_facts(plant.store, NEW, asked, recipes)
        trips.append(await reads_of(plant.store) - before - 1)
        assert isinstance(facts, OrderFacts)
        assert isinstance(facts.recipe, FoundRecipe)
    assert trips == [2, 1]


async def test_known_answer_of_an_event_hides_an_unreadable_transaction(store: Store) -> None:
    identity = CallIdentity("/mes", "call-1", SCOPE, "t-1")
    await store.commit(dedupe.mark_transaction(store.keys, SCOPE, "t-1", "other", 10_000, "mes"))
    (key,) = [key async for batch in scan_keys(store, store.keys.transdedupe("*")) for key in batch]
    await store.execute("DEL", key)
    await store.execute("SADD", key, "x")
    # Without an answer: its mark would fail on this key without end.
    with pytest.raises(EdgeError, match="WRONGTYPE"):
        await read_answer(store, identity)
    await store.commit(dedupe.mark(store.keys, "/mes", "call-1", "given", 10_000))
    assert await read_answer(store, identity) == "given"
