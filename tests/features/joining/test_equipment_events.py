"""Events of a joining tool without a command can satisfy a waiting job."""

import pytest

from edge.features.joining.simulated.controller import JoiningController
from edge.station.equipment import Task
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.tightening import answered, equipped

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

EVENTS = {"result": "joined.v1", "error": "tool-error.v1"}


async def test_a_joining_of_the_operator_is_an_event(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until, events=EVENTS) as bench:
        bench.station.task = Task("J1", "by_hand", {})
        await controller.end_joining()
        await controller.send_result()
        await wait_until(lambda: bench.station.events)
        assert (await answered(bench, wait_until)).error is None
        (event,) = bench.station.events
        assert (event.type_id, event.scope, event.data["evaluation"]) == ("joined.v1", WORK.scope, "OK")
        assert bench.station.late_results == []


async def test_joining_without_a_waiting_job_is_kept_as_late(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, events=EVENTS) as bench:
        await controller.end_joining()
        await wait_until(lambda: bench.station.late_results)
        assert len(bench.station.events) == 1


async def test_an_error_of_the_controller_is_an_event(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until, events=EVENTS) as bench:
        await controller.break_down("spindle overheated")
        await wait_until(lambda: bench.station.events)
        assert bench.station.events[0].data == {"message": "spindle overheated"}
