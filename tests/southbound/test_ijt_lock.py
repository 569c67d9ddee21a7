"""The lock of a joining tool: it is enabled for a command, and not while another system has disabled it."""

from dataclasses import replace

import pytest

from edge.sim.ijt import JoiningController
from edge.southbound.ijt import open_ijt
from tests.conftest import WaitUntil
from tests.southbound.contract import SCOPES, WORK, RecordingStation
from tests.southbound.tightening import TIMES, begun, equipped, settings

pytestmark = pytest.mark.asyncio(loop_scope="module")

NEXT = replace(WORK, command_id="J1/R1/tighten/2", attempt=2)


async def test_the_tool_is_enabled_only_while_a_command_needs_it(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    controller.enabled = True
    async with equipped(controller, wait_until, lock="on") as bench:
        await wait_until(lambda: not controller.enabled)
        await begun(bench, wait_until)
        assert controller.enabled
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        await wait_until(lambda: not controller.enabled)
    assert bench.station.answers[0].error is None


async def test_the_tool_stays_enabled_for_an_open_command_after_a_restart(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, lock="on") as bench:
        await begun(bench, wait_until)
    station = RecordingStation()
    station.unanswered = [replace(WORK, begun=True, offered_again=True)]
    async with open_ijt("wrench", settings(controller, lock="on"), station, SCOPES, times=TIMES) as equipment:
        await wait_until(lambda: equipment.connected)
        assert controller.enabled
        await controller.end_joining()
        await wait_until(lambda: station.answers)
        await wait_until(lambda: not controller.enabled)


async def test_a_tool_that_another_system_disabled_stays_disabled(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, lock="on") as bench:
        await begun(bench, wait_until)
        controller.enabled = False
        await wait_until(lambda: bench.station.answers)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(bench.station.answers) > 1)
        assert not controller.enabled
        reason = "another system has disabled the tool: enable it there"
        assert [each.error for each in bench.station.answers] == [reason, reason]
        # The other system enables it again: commands are carried out from then on.
        controller.enabled = True
        await bench.equipment.send(replace(NEXT, command_id="J1/R1/tighten/3", attempt=3))
        await wait_until(lambda: len(controller.begun) > 1)


async def test_without_the_lock_the_tool_stays_enabled(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until) as bench:
        await begun(bench, wait_until)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        assert controller.enabled
