"""A batch as one action: all bolts of a part, with those that were tightened again."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.features.openprotocol.simulated.controller import (
    JAMMED,
    OpenProtocolFault,
    TighteningController,
    open_openprotocol_controller,
)
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation
from tests.equipment.tightening_controller import attached, connected

pytestmark = pytest.mark.asyncio(loop_scope="module")

BATCH = replace(
    WORK, parameters={"parameter_set": 3, "batch_size": 4, "classification": "batch", "vin": "WDB1HXQZKRAMPLE"}
)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def controller() -> AsyncIterator[TighteningController]:
    """A controller that ends no tightening by itself."""
    async with open_openprotocol_controller(delay=None) as running:
        yield running


async def test_batch_of_four_contains_the_bad_bolt_and_its_rework(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until) as bench:
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.enabled)
        for n in range(5):
            controller.fault = OpenProtocolFault.NOK_ONCE if n == 1 else OpenProtocolFault.NONE
            assert controller.enabled
            controller.end_tightening()
        await wait_until(lambda: bench.station.answers)
        data = bench.station.answers[0].data
    assert (data["evaluation"], data["counts"]) == ("OK", {"ok": 4, "not_ok": 1})
    assert data["batch"] == {"size": 4, "counter": 4, "status": "OK"}
    assert [result["evaluation"] for result in data["results"].values()] == ["OK", "NotOK", "OK", "OK", "OK"]
    assert [result["status"] for result in controller.results.values()] == [1, 0, 1, 1, 1]
    assert (data["vin"], len(controller.begun), controller.enabled) == ("WDB1HXQZKRAMPLE", 1, False)


async def test_batch_continues_after_a_restart_of_the_gateway(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until) as bench:
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.enabled)
        controller.end_tightening()
        await wait_until(lambda: controller.acknowledged)
    controller.end_tightening()
    station = RecordingStation()
    station.unanswered = [replace(BATCH, begun=True)]
    station.begun = [BATCH.command_id]
    async with attached(controller, wait_until, station):
        controller.end_tightening()
        controller.end_tightening()
        await wait_until(lambda: station.answers)
    assert station.answers[0].data["counts"] == {"ok": 4, "not_ok": 0}
    assert len(controller.begun) == 1


async def test_results_of_a_failed_batch_are_late_results(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until) as bench:
        await bench.equipment.send(BATCH)
        await wait_until(lambda: controller.enabled)
        controller.end_tightening()
        await wait_until(lambda: controller.acknowledged)
        controller.break_down(JAMMED)
        await wait_until(lambda: bench.station.answers)
        assert JAMMED in str(bench.station.answers[0].error)
        # Later than the answer: the result of an open command would be its answer.
        await wait_until(lambda: [result.data["evaluation"] for result in bench.station.late_results] == ["OK"])


async def test_unknown_classification_is_refused(controller: TighteningController, wait_until: WaitUntil) -> None:
    async with connected(controller, wait_until) as bench:
        await bench.equipment.send(replace(BATCH, parameters={"classification": "heap"}))
        await wait_until(lambda: bench.station.answers)
        assert "classification" in str(bench.station.answers[0].error)
    assert controller.begun == []
