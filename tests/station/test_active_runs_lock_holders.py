"""The holders of the locks for which active runs wait."""

from typing import cast

from edge.foundation.task_group import background_task
from edge.model.job_state import Cause
from edge.station.active_runs import ActiveRuns, LockHolders
from tests.conftest import WaitUntil
from tests.station.plant import FakeEquipment, Plant, action, linear, order


async def test_holders_are_read_while_a_run_waits(plant: Plant, tool: FakeEquipment, wait_until: WaitUntil) -> None:
    recipe = linear(action("a", "first"), action("b", "last"))
    for step in cast("list[dict[str, object]]", recipe["steps"]):
        step["lock"] = ["wrench"]
    await plant.teach("locked", recipe)
    active = ActiveRuns(plant.runs, ("station-1",))
    holders = LockHolders(plant.store, active, every_s=0.02)
    async with background_task(holders.follow(), "lock holders"):
        await plant.order(Cause.STORE_AND_START, order("J1", "locked"))
        await plant.drive()
        assert holders.named == {}
        await plant.order(Cause.STORE_AND_START, order("J2", "locked"))
        await plant.drive()
        await wait_until(lambda: "held by job J1 (step first)" in str(holders.named.get("wrench")))
        await plant.ask(Cause.ABORT, "J2")
        await plant.drive()
        await wait_until(lambda: holders.named == {})
    assert tool.received()[0] == "a"
