"""The device of one connection: a result is neither held back by the tool nor by results that are missing."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.simulated.controller import TighteningController, open_openprotocol_controller
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.tightening_controller import BOLT, connected

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def controller() -> AsyncIterator[TighteningController]:
    """A controller that ends no tightening by itself."""
    async with open_openprotocol_controller(delay=None) as running:
        yield running


async def test_declined_disable_does_not_hold_the_result_back(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until) as bench:
        await bench.equipment.send(BOLT)
        await wait_until(lambda: controller.begun)
        controller.server.missing.add(Mid.DISABLE_TOOL)
        controller.end_tightening()
        await wait_until(lambda: bench.station.answers)
        await wait_until(lambda: controller.acknowledged == [1])
    assert bench.station.answers[0].error is None


async def test_missed_results_are_requested_when_no_command_is_at_work(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until) as bench:
        controller.end_tightening()
        await wait_until(lambda: bench.station.late_results)
        await bench.equipment.send(BOLT)
        await wait_until(lambda: controller.begun)
        # Two results whose messages are lost, and one of the operator's own that comes.
        missed = [dict(controller.results[1]) | {"result": number, "identifier": "OWN"} for number in (2, 3, 4)]
        controller.results |= {entry["result"]: entry for entry in missed}
        controller.report(4)
        await wait_until(lambda: len(bench.station.late_results) == 2)
        assert bench.station.answers == []
        controller.end_tightening()
        await wait_until(lambda: len(bench.station.late_results) == 4)
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].command_id == WORK.command_id
