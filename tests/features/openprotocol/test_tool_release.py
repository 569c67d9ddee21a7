"""The tool of a strict controller is disabled again after each command, as its own log shows."""

import pytest
from msgspec.structs import replace

from edge.sfc.signal import Phase
from tests.conftest import WaitUntil
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation
from tests.equipment.strict_controller import attached, bolt, completed, strict
from tests.outside.devices.openprotocol_controller import open_strict_controller
from tests.outside.devices.openprotocol_quirks import Quirks
from tests.outside.devices.openprotocol_tool import Habits

BUSY = 79


async def test_stop_of_an_action_whose_time_is_over_disables_the_tool(wait_until: WaitUntil) -> None:
    async with strict(wait_until, habits=Habits(absent=True)) as bench:
        await bench.equipment.send(bolt(1))
        await wait_until(lambda: bench.controller.tool.enabled)
        await bench.equipment.stop(replace(bolt(1), phase=Phase.STOP, parameters={}))
        assert bench.station.stops == [(bolt(1).command_id, None)]
        assert not bench.controller.tool.enabled
        assert bench.controller.violations == []


async def test_tool_is_disabled_once_before_and_once_after_a_command(wait_until: WaitUntil) -> None:
    """A second disable after the result holds back the next start for the time of an answer."""
    async with strict(wait_until) as bench:
        for n in range(3):
            await completed(bench, wait_until, bolt(n))
        bench.controller.tool.habits.absent = True
        await bench.equipment.send(bolt(3))
        await wait_until(lambda: bench.controller.tool.enabled)
        await bench.equipment.stop(replace(bolt(3), phase=Phase.STOP, parameters={}))
        await bench.equipment.send(bolt(4))
        await wait_until(lambda: bench.controller.tool.enabled)
        locks = [mid for mid in bench.controller.mids() if mid in {42, 43}]
        # At the connection, and around each command.
        assert locks == [42] + [42, 43, 42] * 4 + [42, 43]


async def test_declined_disable_is_repeated_until_a_later_one_is_accepted(wait_until: WaitUntil) -> None:
    async with strict(wait_until) as bench:
        tool, quirks = bench.controller.tool, bench.controller.quirks
        await bench.equipment.send(bolt(1))
        await wait_until(lambda: tool.entries("pulled"))
        quirks.refused = {42: BUSY}
        await wait_until(lambda: bench.equipment.open_release)
        release = bench.equipment.open_release
        assert release is not None
        assert "MID 0042 declined" in str(release.reason)
        assert bench.station.outcomes()[bolt(1).command_id]["evaluation"] == "OK"
        assert tool.enabled
        quirks.refused = {}
        await wait_until(lambda: not tool.enabled)
        await wait_until(lambda: bench.equipment.open_release is None)
        await completed(bench, wait_until, bolt(2))
        assert (len(tool.entries("pulled")), bench.controller.connections) == (2, 1)


async def test_open_release_does_not_disable_the_tool_of_another_gateway(wait_until: WaitUntil) -> None:
    """The first gateway could not disable the tool; its next try comes while the second one's command is at work."""
    first_station, second_station = RecordingStation(), RecordingStation()
    async with (
        open_strict_controller(Quirks(), Habits()) as controller,
        attached(controller, first_station) as first,
        attached(controller, second_station) as second,
    ):
        await wait_until(lambda: first.equipment.connected and second.equipment.connected)
        await first.equipment.send(bolt(1))
        await wait_until(lambda: controller.tool.entries("pulled"))
        controller.quirks.refused = {42: BUSY}
        await wait_until(lambda: first.equipment.open_release)
        controller.quirks.refused = {}
        controller.tool.habits.absent = True
        # The stations of both read one store.
        first_station.unanswered = second_station.unanswered = [replace(bolt(2), begun=True)]
        await second.equipment.send(bolt(2))
        await wait_until(lambda: second_station.begun)
        await wait_until(lambda: first.equipment.open_release is None)
        await wait_until(lambda: controller.tool.enabled)
        first_station.unanswered = second_station.unanswered = []
        await second.equipment.stop(replace(bolt(2), phase=Phase.STOP))
        await wait_until(lambda: not controller.tool.enabled)


@pytest.mark.parametrize("lock", ["on", "off"])
async def test_idle_tool_is_disabled_at_a_connection_only_with_the_lock(wait_until: WaitUntil, lock: str) -> None:
    async with open_strict_controller(Quirks(), Habits(absent=True)) as controller:
        controller.tool.enable()
        async with attached(controller, lock=lock) as bench:
            await wait_until(lambda: bench.equipment.connected and 64 in controller.mids())
            assert controller.tool.enabled is (lock == "off")
            assert WORK.command_id not in bench.station.begun
