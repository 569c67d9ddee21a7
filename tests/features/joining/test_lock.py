"""The lock of a joining tool: it is enabled for a command, and not while another system has disabled it."""

from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.features.joining.equipment import open_ijt
from edge.features.joining.simulated.controller import JoiningController
from edge.model.equipment_traffic import EquipmentRequest, TrafficKind
from tests.conftest import WaitUntil
from tests.equipment.contract import SCOPES, WORK
from tests.equipment.recording_station import RecordingStation
from tests.equipment.tightening import TIMES, begun, equipped, settings

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

NEXT = replace(WORK, command_id="J1/R1/tighten/2", attempt=2)

REASON = "another system has disabled the tool: enable it there"


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
        station.unanswered = []
        await controller.end_joining()
        await wait_until(lambda: station.answers)
        await wait_until(lambda: not controller.enabled)


async def test_tool_disabled_by_another_system_stays_disabled(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, lock="on") as bench:
        await begun(bench, wait_until)
        controller.enabled = False
        await wait_until(lambda: bench.station.answers)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(bench.station.answers) > 1)
        assert not controller.enabled
        assert [answer.error for answer in bench.station.answers] == [REASON, REASON]
        assert (str(bench.equipment.problem), len(bench.station.disabled)) == (REASON, 1)
        # The other system enables it again: commands are carried out from then on.
        controller.enabled = True
        await bench.equipment.send(replace(NEXT, command_id="J1/R1/tighten/3", attempt=3))
        await wait_until(lambda: len(controller.begun) > 1)
        assert (bench.equipment.problem, bench.station.disabled) == ("", set())


async def test_a_tool_disabled_while_idle_stays_disabled_after_a_restart(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    """A resting tool is enabled and disabled by another system, and the gateway starts again before the next job."""
    async with equipped(controller, wait_until, lock="on") as bench:
        equipment, station = bench.equipment, bench.station
        await begun(bench, wait_until)
        await bench.device.finish()
        await wait_until(lambda: station.answers and not controller.enabled)
        assert equipment.problem == ""
        with capture_logs() as logs:
            controller.enabled = True
            await wait_until(lambda: any(entry["event"] == "tool enabled without a command" for entry in logs))
        controller.enabled = False
        await wait_until(lambda: str(equipment.problem) == REASON)
    second = RecordingStation()
    second.disabled = station.disabled
    async with open_ijt("wrench", settings(controller, lock="on"), second, SCOPES, times=TIMES) as again:
        await wait_until(lambda: again.connected)
        assert str(again.problem) == REASON
        await again.send(NEXT)
        await wait_until(lambda: second.answers)
        assert ([answer.error for answer in second.answers], controller.enabled) == ([REASON], False)
        controller.enabled = True
        await wait_until(lambda: not again.problem and not second.disabled)


async def test_own_calls_are_not_attributed_to_another_system(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, lock="on") as bench:
        for number in range(1, 6):
            await bench.equipment.send(replace(WORK, command_id=f"J1/R1/tighten/{number}", attempt=number))
            await wait_until(partial(_has, controller.begun, number))
            await bench.device.finish()
            await wait_until(partial(_has, bench.station.answers, number))
        await wait_until(lambda: not controller.enabled)
        assert [answer.error for answer in bench.station.answers] == [None] * 5
        assert (bench.equipment.problem, bench.station.disabled) == ("", set())


async def test_tool_enabled_while_the_gateway_was_stopped_is_used(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    controller.forget()
    controller.enabled = True
    station = RecordingStation()
    station.disabled = {controller.device.url}
    async with open_ijt("wrench", settings(controller, lock="on"), station, SCOPES, times=TIMES) as equipment:
        await wait_until(lambda: equipment.connected)
        assert (equipment.problem, station.disabled) == ("", set())


def _has(found: list[Any], number: int) -> bool:
    return len(found) >= number


async def test_power_cut_during_a_command_is_not_taken_for_another_system(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    """The controller cannot report identifiers: the result is waited for, and the next command enables the tool."""
    async with (
        controller.without("GetIdentifiers"),
        equipped(controller, wait_until, lock="on") as bench,
    ):
        await begun(bench, wait_until)
        async with bench.device.away():
            pass
        connections = bench.equipment.connection_count
        bench.station.unanswered = [replace(WORK, begun=True, offered_again=True)]
        await wait_until(lambda: bench.equipment.connected and bench.equipment.connection_count > connections)
        await bench.equipment.stop(WORK)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(controller.begun) > 1)
        assert (bench.equipment.problem, bench.station.disabled, bench.station.answers) == ("", set(), [])


async def test_tool_shared_by_two_gateways_is_not_taken_for_disabled(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    """The other gateway works with the tool: what it enables and disables meanwhile is ours."""
    async with equipped(controller, wait_until, lock="on") as bench:
        watching = bench.station
        # From here on the gateway watches the tool, which it has locked.
        await wait_until(lambda: any(_is_call_of("EnableAsset", data) for _, data in watching.traffic))
        watching.unanswered = [replace(NEXT, command_id="J2/R1/tighten/1", job_id="J2")]
        for enabled in (True, False):
            controller.enabled = enabled
            await wait_until(partial(_has_reported_last, watching.traffic, {"Enabled": enabled}))
        watching.unanswered = []
        await begun(bench, wait_until)
        assert (bench.equipment.problem, watching.disabled) == ("", set())


def _is_call_of(method: str, data: object) -> bool:
    return isinstance(data, EquipmentRequest) and data.question == "call" and method in data.arguments


def _has_reported_last(traffic: list[tuple[TrafficKind, Any]], change: dict[str, bool]) -> bool:
    return [data for kind, data in traffic if kind is TrafficKind.HAPPENING][-1:] == [change]


async def test_tool_marked_as_disabled_refuses_commands(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until, lock="on") as bench:
        await wait_until(lambda: not controller.enabled)
        bench.station.disabled = {controller.device.url}
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.station.answers)
        assert (bench.station.answers[0].error, controller.begun) == (REASON, [])


async def test_lock_is_on_by_default_where_the_controller_reports_enabled(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    controller.enabled = True
    async with equipped(controller, wait_until) as bench:
        await wait_until(lambda: not controller.enabled)
        await begun(bench, wait_until)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        await wait_until(lambda: not controller.enabled)


async def test_lock_is_off_by_default_where_enabled_is_not_reported(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with controller.asset.hidden(), equipped(controller, wait_until) as bench:
        await begun(bench, wait_until)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        assert controller.enabled


async def test_without_the_lock_the_tool_stays_enabled(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until, lock="off") as bench:
        await begun(bench, wait_until)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        assert controller.enabled


async def test_result_that_another_gateway_answered_first_ends_the_command(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    """The answer of the other gateway is committed before this one has the result; it must be ready for the next."""
    async with equipped(controller, wait_until, lock="on") as bench:
        await begun(bench, wait_until)
        bench.station.stopped_meanwhile.add(WORK.command_id)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(controller.begun) > 1)
        assert (bench.equipment.problem, bench.station.late_results) == ("", [])


async def test_tool_disabled_by_a_stop_of_another_gateway_can_be_used(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, lock="on") as bench:
        await begun(bench, wait_until)
        bench.station.stopped_meanwhile.add(WORK.command_id)
        controller.forget()
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(controller.begun) > 1)
        assert (bench.equipment.problem, bench.station.disabled, bench.station.answers) == ("", set(), [])


async def test_tool_in_use_by_another_gateway_stays_enabled(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, lock="on") as bench:
        other = replace(NEXT, command_id="J2/R1/tighten/1", job_id="J2", begun=True)
        await begun(bench, wait_until)
        bench.station.unanswered = [other]
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(controller.begun) > 1)
        assert controller.enabled
        bench.station.unanswered = []
        await bench.device.finish()
        await wait_until(lambda: not controller.enabled)


async def test_stop_of_a_joining_of_another_gateway_reaches_the_tool(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    """The joining at the tool is of the other gateway, and the stop was decided here."""
    async with equipped(controller, wait_until, lock="on") as bench:
        await begun(bench, wait_until)
        controller.identifiers = [{"Name": "CommandID", "EntityId": NEXT.command_id}]
        await bench.equipment.stop(NEXT)
        assert (len(bench.device.stopped), controller.enabled) == (1, False)
