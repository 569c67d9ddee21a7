"""The removal of a job leaves its tombstone: when it was removed, and which results it had."""

from edge.model.job_state import Cause
from edge.station.retention import plan_removal
from edge.store import dedupe, jobs
from tests.station.plant import DEDUPE_MS, NOW, FakeEquipment, Plant, order
from tests.station.test_answers import started


async def remove(plant: Plant) -> frozenset[str]:
    job = await plant.job("J1")
    await plant.store.commit(await plan_removal(plant.store, job, Cause.EXPIRE, NOW + 9_000, NOW + 7, DEDUPE_MS))
    assert await jobs.load(plant.store, "J1") is None
    assert await plant.store.fetch(dedupe.query_removal(plant.store.keys, "J1")) == NOW + 7
    assert await plant.store.execute("PTTL", plant.store.keys.joborder_tombstone("J1")) > 0
    return await plant.store.fetch(dedupe.query_taken(plant.store.keys, "J1"))


async def test_tombstone_has_the_results_of_a_run(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1")
    await plant.answer(tool.commands[0], {"torque": 85})
    await plant.drive()
    await plant.answer(tool.commands[1], {"torque": 86})
    assert len(await remove(plant)) == 2


async def test_tombstone_of_a_job_that_never_ran_has_no_results(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    assert await remove(plant) == frozenset()


async def test_job_whose_run_cannot_be_read_is_removed(plant: Plant) -> None:
    await started(plant, "J1")
    await plant.store.execute("HSET", plant.store.keys.sfc_execution("J1"), "state", "damaged")
    assert await remove(plant) == frozenset()
