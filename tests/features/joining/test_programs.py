"""A batch as one action over OPC UA, processes and joints that are checked before the start, and counters."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.features.joining.programs import counter_calls, selected_joint
from edge.features.joining.simulated.controller import JoiningController, open_ijt
from edge.features.joining.simulated.results import NOT_OK, OK
from edge.foundation.errors import Refused
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.tightening import equipped

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

WHEEL = {"joining_process_id": "wheel 120Nm"}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def controller() -> AsyncIterator[JoiningController]:
    """A controller with lists of processes and joints, which ends no joining by itself."""
    processes, joints = ("wheel 120Nm", "axle 85Nm"), {"J-7": "axle 85Nm"}
    async with open_ijt(delay=None, processes=processes, joints=joints) as running:
        yield running


async def test_batch_of_four_contains_the_bad_bolt_and_its_rework(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until) as bench:
        batch = {"batch_size": 4, "classification": "batch", "vin": "VIN-1", "reset_process": True}
        await bench.equipment.send(replace(WORK, parameters=WHEEL | batch))
        await wait_until(lambda: controller.begun)
        for evaluation in (OK, NOT_OK, OK, OK, OK):
            await controller.end_joining(evaluation)
        await wait_until(lambda: bench.station.answers)
        data = bench.station.answers[0].data
        await wait_until(lambda: len(set(controller.acknowledged)) == 6)
    assert [result["evaluation"] for result in data["results"].values()] == ["OK", "NotOK", "OK", "OK", "OK"]
    assert (data["evaluation"], data["counters"]) == ("OK", {"batch_size": 4, "batch_count": 4})
    assert (data["vin"], data["process"], len(controller.finished)) == ("VIN-1", "wheel 120Nm", 5)
    assert data["results"]["2"]["violations"]["Torque"]["violation"] == "High"


async def test_missing_process_is_refused_before_the_tool_is_enabled(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until) as bench:
        controller.enabled = False
        assert bench.equipment.programs == ("wheel 120Nm", "axle 85Nm", "joint J-7")  # type: ignore[attr-defined]
        await bench.equipment.send(replace(WORK, parameters={"joining_process_id": "door 8Nm"}))
        await wait_until(lambda: bench.station.answers)
        assert bench.station.answers[0].error == (
            "the controller has no joining process door 8Nm; it has axle 85Nm, wheel 120Nm"
        )
    assert (controller.begun, controller.enabled) == ([], False)


async def test_process_that_was_added_later_is_found(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until) as bench:
        controller.processes.processes.append("door 8Nm")
        await bench.equipment.send(replace(WORK, parameters={"joining_process_id": "door 8Nm"}))
        await wait_until(lambda: controller.begun == ["door 8Nm"])
    controller.processes.processes.remove("door 8Nm")


async def test_joint_selects_its_process(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until) as bench:
        await bench.equipment.send(replace(WORK, parameters={"select": "joint", "joint_id": "J-7"}))
        await wait_until(lambda: controller.begun)
        await controller.end_joining()
        await wait_until(lambda: bench.station.answers)
        assert bench.station.answers[0].data["joint_id"] == "J-7"
    assert (controller.begun, controller.processes.selected_joint) == (["axle 85Nm"], "J-7")


@pytest.mark.parametrize("parameters", [{"select": "joint"}, {"select": "joint", "joint_id": "J-7", **WHEEL}])
async def test_invalid_selection_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        selected_joint(replace(WORK, parameters=parameters))


@pytest.mark.parametrize("parameters", [{"batch_size": -1}, {"counter": "many"}])
async def test_invalid_counter_is_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(Refused):
        list(counter_calls(replace(WORK, parameters=parameters)))


async def test_counters_are_set_in_their_order() -> None:
    parameters = {
        "reset_process": True,
        "batch_size": "4",
        "counter": 2,
        "increment_counter": 1,
        "decrement_counter": 3,
    }
    assert list(counter_calls(replace(WORK, parameters=parameters))) == [
        ("ResetJoiningProcess", ()),
        ("SetJoiningProcessSize", (4,)),
        ("SetJoiningProcessCounter", (2,)),
        ("IncrementJoiningProcessCounter", (1,)),
        ("DecrementJoiningProcessCounter", (3,)),
    ]
