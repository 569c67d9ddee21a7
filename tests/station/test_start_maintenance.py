"""Jobs that may start stay in the start queue during maintenance."""

import asyncio

from edge.access.mode import ModeWatch
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.model.plant import Maintenance
from edge.station.start import Starter, StartSweep
from edge.store import jobs, mode, work
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.station.plant import SCOPE, FakeEquipment, Plant, order


async def switch(store: Store, to: Maintenance | None) -> None:
    await store.commit(mode.save(store.keys, await mode.load(store, "gw-1"), "", to))


async def test_queued_jobs_wait_without_filling_the_worker(
    plant: Plant, tool: FakeEquipment, wait_until: WaitUntil
) -> None:
    watch = ModeWatch(plant.store, "gw-1", 0.01)
    await watch.refresh()
    plant.worker._starter = Starter(plant.store, plant.runs, plant.dispatch, watch)  # noqa: SLF001
    sweep = StartSweep(plant.store, (SCOPE,), plant.runs.clock, plant.worker.claimed, mode=watch)
    await switch(plant.store, Maintenance())
    await watch.refresh()
    for number in range(5):
        await plant.order(Cause.STORE_AND_START, order(f"J{number}"))
    async with plant.at_work(), background_task(watch.run(), "mode"), background_task(sweep.run(), "sweep"):
        async with asyncio.timeout(60):
            while await work.length(plant.store, SCOPE):  # noqa: ASYNC110 - the store has no event for it
                await asyncio.sleep(0.01)
        await sweep.sweep()
        assert await work.length(plant.store, SCOPE) == 0
        assert len(await jobs.queued_starts(plant.store, SCOPE, 10)) == 5
        assert tool.commands == []
        await switch(plant.store, None)
        await wait_until(lambda: len(tool.received()) == 5)


async def test_start_under_an_old_mode_is_not_committed(plant: Plant) -> None:
    watch = ModeWatch(plant.store, "gw-1")
    await watch.refresh()
    plant.starter = Starter(plant.store, plant.runs, plant.dispatch, watch)
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await switch(plant.store, Maintenance())  # after the last look
    await plant.drive()
    assert (await plant.job("J1")).status.state is JobState.ALLOWED_TO_START
    assert await jobs.queued_starts(plant.store, SCOPE, 10) == ["J1"]
