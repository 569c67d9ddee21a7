"""Gauges of the store: jobs by state, waiting work with its start time, dead letters."""

import pytest

from edge.model.job_state import Cause, JobState
from edge.store import changes, dead_letters, gauges, work
from edge.store.client import Store
from edge.store.dead_letters import Letter, LetterKind, RefusedMessage, record_refusal
from edge.store.work import WorkKind
from tests.station.plant import LINEAR, PHOTO, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, order

SCOPES = (SCOPE, "station-2")


@pytest.fixture
async def plant(store: Store) -> Plant:
    """A station that knows the work master `linear`, and does not work by itself."""
    tool = FakeEquipment()
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())
    await plant.teach("linear", LINEAR)
    return plant


async def test_gauges_of_an_empty_store_are_zero_except_memory(store: Store) -> None:
    found = await gauges.read_gauges(store, SCOPES)
    assert found.memory.used > 0
    assert (found.dead_letters, found.refused) == (0, 0)
    nothing = gauges.ScopeGauges(open_jobs={}, ended_jobs=0, work=0, work_since=None, unpublished_since=None)
    assert found.scopes == dict.fromkeys(SCOPES, nothing)


async def test_jobs_are_counted_by_their_state(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    for number in range(2, 5):
        await plant.order(Cause.STORE, order(f"J{number}"))
    await plant.order(Cause.STORE_AND_START, order("J9"))
    await plant.ask(Cause.ABORT, "J9")
    scope_gauges = (await gauges.read_gauges(plant.store, SCOPES, batch=2)).scopes[SCOPE]
    assert scope_gauges.open_jobs == {JobState.RUNNING: 1, JobState.NOT_ALLOWED_TO_START: 3}
    assert scope_gauges.ended_jobs == 1


async def test_waiting_work_is_reported_with_its_start_time(store: Store) -> None:
    for _ in range(2):
        await store.commit(work.add(store.keys, SCOPE, WorkKind.SEND, "J1"))
    found = (await gauges.read_gauges(store, SCOPES)).scopes
    first = (await store.execute("XRANGE", store.keys.sfc_work(SCOPE), "-", "+", "COUNT", 1))[0][0]
    assert (found[SCOPE].work, found[SCOPE].work_since) == (2, int(first.partition("-")[0]))
    assert found["station-2"].work == 0


async def test_unpublished_change_is_reported_with_its_time(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    assert (await gauges.read_gauges(plant.store, SCOPES)).scopes[SCOPE].unpublished_since is None
    cursor = (await changes.latest(plant.store, (SCOPE,)))[SCOPE]
    await plant.store.execute("HSET", plant.store.keys.publisher_cursors(), SCOPE, cursor)
    assert (await gauges.read_gauges(plant.store, SCOPES)).scopes[SCOPE].unpublished_since is None
    await plant.order(Cause.STORE, order("J2"))
    latest = (await changes.latest(plant.store, (SCOPE,)))[SCOPE]
    found = (await gauges.read_gauges(plant.store, SCOPES)).scopes[SCOPE].unpublished_since
    assert found is not None
    assert int(cursor.partition("-")[0]) <= found <= int(latest.partition("-")[0])


async def test_dead_letters_and_refused_messages_are_counted(store: Store) -> None:
    letter = Letter(LetterKind.START, SCOPE, "J1", "its start met a defect", 1000)
    await store.commit(dead_letters.add(store.keys, letter, 60_000))
    await store.commit(record_refusal(store.keys, RefusedMessage("topic", "", "", "unreadable", "no JSON", b"{")))
    found = await gauges.read_gauges(store, SCOPES)
    assert (found.dead_letters, found.refused) == (1, 1)
