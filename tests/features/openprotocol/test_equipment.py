"""An Open Protocol controller fulfils the equipment contract; the log of the spindle is the reference."""

from collections.abc import AsyncIterator
from functools import partial

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.config import Settings
from edge.equipment.ping import ping
from edge.features.openprotocol.feature import FEATURE
from edge.features.openprotocol.protocol.frame import MidFrame
from edge.features.openprotocol.protocol.mids import Mid
from edge.features.openprotocol.settings import OpenProtocolSettings
from edge.features.openprotocol.simulated.controller import (
    JAMMED,
    OpenProtocolFault,
    TighteningController,
    open_openprotocol_controller,
)
from edge.foundation.errors import Unavailable
from edge.model.equipment_traffic import TrafficKind
from edge.station.equipment import EquipmentEvent, Repetition, Task
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, RESET, WORK, Bench, Contract, Opener
from tests.equipment.recording_station import RecordingStation
from tests.equipment.tightening_controller import BOLT, attached, connected, tightened

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def controller() -> AsyncIterator[TighteningController]:
    """A controller that ends no tightening by itself."""
    async with open_openprotocol_controller(delay=None, link_layer=False) as running:
        yield running


@pytest.fixture
def opener(controller: TighteningController, wait_until: WaitUntil) -> Opener:
    return partial(connected, controller, wait_until)


class TestOpenProtocolContract(Contract):
    failure = JAMMED
    repetition = Repetition.ONCE


class TestOpenProtocolWithoutLinkLayerContract(Contract):
    failure = JAMMED
    repetition = Repetition.ONCE

    @pytest.fixture
    def opener(self, controller: TighteningController, wait_until: WaitUntil) -> Opener:
        return partial(connected, controller, wait_until, link_layer="off")


class TestOpenProtocolRepeatableContract(Contract):
    """The setting of those who want the tool to be enabled again after an unknown outcome."""

    failure = JAMMED

    @pytest.fixture
    def opener(self, controller: TighteningController, wait_until: WaitUntil) -> Opener:
        return partial(connected, controller, wait_until, repetition="repeatable")


async def test_next_result_belongs_to_the_command_without_marks(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until, correlation="next") as bench:
        controller.server.missing |= {Mid.IDENTIFIER}
        controller.set_identifier("FIXED")
        answer = await tightened(bench, wait_until, parameter_set=3)
        assert (answer.error, answer.data["identifier"]) == (None, "FIXED")
        controller.end_tightening()
        await wait_until(lambda: bench.station.late_results)
        bench.station.unanswered = [NEXT]
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(controller.begun) == 2)
        async with bench.device.cut_off():
            controller.end_tightening()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
    assert len(controller.begun) == 2


async def test_result_has_torque_angle_vin_and_batch(opener: Opener, wait_until: WaitUntil) -> None:
    async with opener() as bench:
        data = (await tightened(bench, wait_until, parameter_set=3, vin="WDB1HXQZKRAMPLE")).data
    expected = {
        "evaluation": "OK",
        "torque": {"value": 85.2, "unit": "N·m"},
        "angle": {"value": 42, "unit": "°"},
        "violations": {},
        "vin": "WDB1HXQZKRAMPLE",
        "parameter_set": 3,
        "batch": {"size": 1, "counter": 1, "status": None},
        "result_id": "1",
    }
    assert {name: data[name] for name in expected} == expected
    assert data["identifier"] == f"{'WDB1HXQZKRAMPLE':<17}{WORK.mark[:8]}"
    assert msgspec.json.encode(data)


async def test_not_ok_tightening_is_a_result_with_its_limits(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        controller.fault = OpenProtocolFault.NOK
        answer = await tightened(bench, wait_until, parameter_set=3)
    assert (answer.error, answer.data["evaluation"], answer.data["torque_status"]) == (None, "NotOK", "High")
    assert answer.data["violations"]["Torque"]["high"] == {"value": 93.5, "unit": "N·m"}


async def test_tool_is_enabled_only_for_the_command(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(BOLT)
        await wait_until(lambda: controller.enabled)
        assert (controller.parameter_set, controller.results) == (3, {})
        controller.end_tightening()
        await wait_until(lambda: bench.station.answers)
        assert not controller.enabled
        await wait_until(lambda: controller.acknowledged == [1])


@pytest.mark.parametrize("parameters", [{"parameter_set": 3}, {"job": 1}])
async def test_reset_disables_the_tool_and_aborts_the_job(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil, parameters: dict[str, int]
) -> None:
    async with opener() as bench:
        await bench.equipment.send(replace(WORK, parameters=parameters))
        await wait_until(lambda: controller.begun)
        await bench.equipment.reset(replace(RESET, parameters=parameters))
        await wait_until(lambda: RESET.command_id in bench.station.outcomes())
    assert (controller.enabled, controller.job, len(controller.stopped)) == (False, 0, 1)


async def test_declined_step_fails_the_command_and_leaves_the_tool_disabled(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        answer = await tightened(bench, wait_until, parameter_set=99)
        assert answer.error == "the controller has no parameter set 99; it has 1, 2, 3, 4"
        controller.fault = OpenProtocolFault.REFUSED
        await bench.equipment.send(NEXT)
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
    assert "MID 0043 declined" in bench.station.outcomes()[NEXT.command_id]
    assert (controller.begun, controller.enabled) == ([], False)


@pytest.mark.parametrize(
    "parameters",
    [
        {"parameter_set": "x"},
        {"parameter_set": 0},
        {"job": True},
        {"parameter_set": 1, "job": 1},
        {"vin": "ä"},
        {"vin": 7},
    ],
)
async def test_invalid_parameters_start_no_tightening(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil, parameters: dict[str, object]
) -> None:
    async with opener() as bench:
        assert (await tightened(bench, wait_until, **parameters)).error
    assert controller.begun == []


async def test_controller_without_identifiers_fails_the_command(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        controller.server.missing.add(Mid.IDENTIFIER)
        answer = await tightened(bench, wait_until, parameter_set=3)
    assert answer.error
    assert str(answer.error).startswith("the identifier: MID 0050 declined")
    assert controller.begun == []


async def test_tightening_lost_in_a_power_cut_is_unknown_and_not_repeated(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(BOLT)
        bench.station.unanswered = [BOLT]
        await wait_until(lambda: controller.begun)
        async with bench.device.away():
            pass
        await wait_until(lambda: bench.station.unknown)
    assert (len(controller.begun), controller.finished) == (1, [])


async def test_results_missed_in_a_power_cut_of_the_gateway_are_found(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    """A new process knows only the begun mark; others have tightened meanwhile."""
    async with connected(controller, wait_until) as bench:
        await bench.equipment.send(BOLT)
        await wait_until(lambda: controller.begun)
        station = bench.station
    for _ in range(3):
        controller.end_tightening()
        controller.set_identifier("OTHER")
    station.unanswered = [replace(BOLT, begun=True, offered_again=True)]
    async with attached(controller, wait_until, station) as bench:
        await wait_until(lambda: station.answers)
    assert station.answers[0].data["result_id"] == "1"
    assert len(controller.begun) == 1


async def test_unreported_result_is_polled_for(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        controller.fault = OpenProtocolFault.UNREPORTED
        assert (await tightened(bench, wait_until, parameter_set=3)).data["evaluation"] == "OK"


async def test_results_of_the_operator_during_an_outage_are_reported(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await tightened(bench, wait_until, parameter_set=3)
        controller.set_identifier("OTHER")
        async with bench.device.cut_off():
            controller.end_tightening()
            controller.end_tightening()
        await wait_until(lambda: len(bench.station.late_results) == 2)
        assert {result.data["result_id"] for result in bench.station.late_results} == {"2", "3"}
        assert len(bench.station.answers) == 1


async def test_late_result_is_in_the_inbox_before_it_is_acknowledged(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(BOLT)
        await wait_until(lambda: controller.begun)
        bench.station.stopped_meanwhile = {BOLT.command_id}
        bench.station.failures = [Unavailable("the store is away")]
        controller.end_tightening()
        await wait_until(lambda: not bench.station.failures)
        (memory,) = bench.station.memory.values()
        assert bool(controller.acknowledged) == (memory.get("unsettled_results:edge", "[]") != "[]")
        await wait_until(lambda: bench.station.answers)
        assert bench.station.outcomes()[BOLT.command_id]["evaluation"] == "OK"


async def test_declined_stop_is_reported(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(BOLT)
        await wait_until(lambda: controller.begun)
        controller.server.missing.add(Mid.DISABLE_TOOL)
        await bench.equipment.stop(BOLT)
        controller.server.missing.clear()
        await bench.equipment.stop(BOLT)
    declined = "the tool may still be enabled: MID 0042 declined: the message is not known"
    assert bench.station.stops == [(BOLT.command_id, declined), (BOLT.command_id, None)]


async def test_alarm_is_reported_as_problem_until_it_is_cleared(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        controller.break_down()
        await wait_until(lambda: str(bench.equipment.problem) == f"the controller reports the alarm {JAMMED}")
        controller.clear_alarm()
        await wait_until(lambda: bench.equipment.problem == "")


async def test_scan_own_result_and_alarm_are_events(controller: TighteningController, wait_until: WaitUntil) -> None:
    types = {"identifier": "scanned.v1", "result": "own.v1", "alarm": "alarm.v1"}
    async with connected(controller, wait_until, events=types) as bench:
        bench.station.task = Task("J1", "own", {})
        # They are subscribed to in the background.
        mids = {Mid.IDENTIFIER_SUBSCRIBE, Mid.ALARM_SUBSCRIBE}
        await wait_until(lambda: mids <= {mid_frame.mid for mid_frame in controller.server.received})
        controller.set_identifier("SCAN-1")
        controller.end_tightening()
        controller.break_down()
        await wait_until(lambda: len(bench.station.events) == 3)
        events: dict[str, EquipmentEvent] = {event.type_id: event for event in bench.station.events}
    assert events["scanned.v1"].data == {"identifier": "SCAN-1"}
    assert (events["own.v1"].data["identifier"], events["alarm.v1"].data["code"]) == ("SCAN-1", JAMMED)
    assert bench.station.late_results == []


async def test_own_result_that_no_job_uses_is_kept_as_late(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until, events={"result": "own.v1"}) as bench:
        controller.end_tightening()
        await wait_until(lambda: bench.station.late_results)
        assert len(bench.station.events) == 1


async def test_tool_lock_of_another_system_is_unchanged_with_lock_off(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with connected(controller, wait_until, lock="off") as bench:
        await bench.equipment.send(BOLT)
        await wait_until(lambda: controller.identifier)
        controller.enable()
        controller.end_tightening()
        await wait_until(lambda: bench.station.answers)
        await bench.equipment.stop(BOLT)
        assert controller.enabled
    sent = {mid_frame.mid for mid_frame in controller.server.received}
    assert not sent & {Mid.ENABLE_TOOL, Mid.DISABLE_TOOL}


async def test_tool_without_a_command_is_disabled_at_the_connection(
    controller: TighteningController, wait_until: WaitUntil
) -> None:
    """A gateway that ended during a command leaves the tool enabled; the command may have ended meanwhile."""
    controller.clear()
    controller.enabled = True
    async with attached(controller, wait_until, RecordingStation()):
        await wait_until(lambda: not controller.enabled)


async def test_requests_are_reported_with_their_answers(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        controller.fault = OpenProtocolFault.REFUSED
        await tightened(bench, wait_until, parameter_set=3)
        calls = [data for what, data in bench.station.traffic if what is TrafficKind.ASKED]
    (declined,) = [call for call in calls if call.question == "MID 0043 revision 1"]
    assert (declined.arguments, declined.error) == ([], "MID 0043 declined: the tool cannot be reached")
    assert any(call.found and call.found["answer"] == "MID 0005 revision 1" for call in calls)


async def test_unreadable_result_is_stored_and_acknowledged(
    opener: Opener, controller: TighteningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        controller.server.send_raw(MidFrame(Mid.RESULT, b"01what is this"))
        await wait_until(lambda: bench.station.refused and controller.acknowledged)
        assert (await tightened(bench, wait_until, parameter_set=3)).data["evaluation"] == "OK"
    assert bench.station.refused[0].payload == b"01what is this"
    assert "MID 0061 revision 1: channel" in str(bench.station.refused[0].reason)


async def test_clock_of_the_controller_is_set(controller: TighteningController, wait_until: WaitUntil) -> None:
    async with connected(controller, wait_until, clock="set"):
        assert Mid.SET_TIME not in {mid_frame.mid for mid_frame in controller.server.received}


async def test_controller_with_few_messages_works(controller: TighteningController, wait_until: WaitUntil) -> None:
    """Only start, results, parameter sets, identifier and the lock are indispensable."""
    async with connected(controller, wait_until) as first:
        optional = {Mid.IDENTIFIER_SUBSCRIBE, Mid.ALARM_SUBSCRIBE, Mid.OLD_RESULT, Mid.ABORT_JOB}
        controller.server.missing |= optional
        station: RecordingStation = first.station
    async with attached(controller, wait_until, station) as bench:
        assert isinstance(bench, Bench)
        assert (await tightened(bench, wait_until, parameter_set=3)).data["evaluation"] == "OK"
    controller.server.missing.clear()


async def test_controller_is_pinged_by_its_identification() -> None:
    over = FEATURE.kinds["openprotocol"].ping
    async with open_openprotocol_controller("station 7") as controller:
        url = f"tcp://127.0.0.1:{controller.server.port}"
        section = OpenProtocolSettings(kind="openprotocol", type_ids=("a",), url=url)
        pong = await ping(over, "wrench", section, Settings())
    assert (pong.answers, pong.detail) == (True, "'station 7' has started")
    nobody = replace(section, url="tcp://127.0.0.1:1")
    pong = await ping(over, "wrench", nobody, Settings())
    assert (pong.answers, pong.seconds, "127.0.0.1:1" in pong.detail) == (False, None, True)
