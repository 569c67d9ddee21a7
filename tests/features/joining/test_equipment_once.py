"""A joining is started only once: the work of the spindle is compared with the results at the station."""

import pytest
from asyncua import ua
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.features.joining.equipment import open_ijt
from edge.features.joining.simulated.controller import IjtFault, JoiningController
from edge.foundation.errors import Unavailable
from edge.station.equipment import Repetition
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, RESET, SCOPES, WORK, Opener
from tests.equipment.recording_station import RecordingStation
from tests.equipment.tightening import TIMES, answered, begun, equipped, settings

SPINDLE = "P1 85Nm"
BY_TRIGGER = replace(WORK, parameters={"joining_process_id": SPINDLE, "start": False})
NUMBERS = ("RequestResults", "RequestUnacknowledgedResults")

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


def is_safe(controller: JoiningController) -> bool:
    return not controller.enabled and controller.selected is None and controller.identifiers == []


async def test_reset_makes_the_tool_safe_while_a_joining_runs(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
        await bench.equipment.reset(RESET)
        await wait_until(lambda: RESET.command_id in bench.station.outcomes())
    assert (controller.begun, controller.stopped) == ([SPINDLE], [SPINDLE])
    assert is_safe(controller)
    assert bench.station.outcomes() == {
        RESET.command_id: {"reset": True},
        WORK.command_id: "the action was reset before it ended",
    }


@pytest.mark.parametrize("missing", [(), ("GetIdentifiers",), ("DeselectJoiningProcess",)])
async def test_reset_locks_a_tool_that_waits_for_its_trigger(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil, missing: tuple[str, ...]
) -> None:
    async with controller.without(*missing), opener() as bench:
        await bench.equipment.send(BY_TRIGGER)
        await wait_until(lambda: controller.selected)
        await bench.equipment.reset(RESET)
        await wait_until(lambda: RESET.command_id in bench.station.outcomes())
    assert not controller.enabled
    assert controller.begun == []


@pytest.mark.parametrize("missing", [(), NUMBERS, (*NUMBERS, "GetLatestResult"), ("GetIdentifiers", *NUMBERS)])
async def test_joining_that_ended_unreported_is_found_and_not_repeated(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil, missing: tuple[str, ...]
) -> None:
    async with controller.without(*missing), opener() as bench:
        await begun(bench, wait_until)
        bench.station.unanswered = [WORK]
        async with bench.device.cut_off():
            await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].data["torque"] == {"value": 85.2, "unit": "N·m"}
    assert controller.begun == [SPINDLE]


@pytest.mark.parametrize("missing", [(), NUMBERS, ("GetResultById",), ("GetLatestResult",)])
async def test_joining_lost_in_a_power_cut_is_unknown_and_not_repeated(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil, missing: tuple[str, ...]
) -> None:
    async with controller.without(*missing), opener() as bench:
        await begun(bench, wait_until)
        bench.station.unanswered = [WORK]
        async with bench.device.away():
            pass
        await wait_until(lambda: bench.station.unknown)
    assert [outcome_unknown.command_id for outcome_unknown in bench.station.unknown] == [WORK.command_id]
    assert controller.begun == [SPINDLE]


async def test_operator_result_during_an_outage_does_not_repeat_a_joining(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with controller.without(*NUMBERS), opener() as bench:
        await begun(bench, wait_until)
        bench.station.unanswered = [WORK]
        async with bench.device.cut_off():
            await controller.end_joining()
            await controller.end_joining()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].error is None
    assert controller.begun == [SPINDLE]


async def test_joining_that_ends_between_two_reconnect_requests_is_found(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
        bench.station.unanswered = [replace(WORK, begun=True)]
        controller.fault = IjtFault.UNSEEN
        async with bench.device.cut_off():
            pass
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].error is None
    assert controller.begun == [SPINDLE]


@pytest.mark.parametrize("missing", [(), ("GetIdentifiers", *NUMBERS)])
async def test_start_marked_before_a_gateway_was_killed_is_not_sent(
    controller: JoiningController, wait_until: WaitUntil, missing: tuple[str, ...]
) -> None:
    """Only the mark is known: the start may have been sent or not."""
    async with controller.without(*missing), equipped(controller, wait_until) as bench:
        await bench.equipment.send(replace(WORK, begun=True, offered_again=True))
        if missing:
            await wait_until(lambda: controller.device.server and bench.equipment.connected)
        else:
            await wait_until(lambda: bench.station.unknown)
    assert controller.begun == []


async def test_begun_mark_is_committed_before_the_start(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        bench.station.failures = [Unavailable("the store is away")]
        await bench.equipment.send(WORK)
        bench.station.unanswered = [WORK]
        await wait_until(lambda: not bench.station.failures)
        assert controller.begun == []
        await wait_until(lambda: controller.begun)
    assert bench.station.begun == [WORK.command_id]


async def test_command_stopped_before_its_start_is_not_started(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        bench.station.stopped_meanwhile = {WORK.command_id}
        await bench.equipment.send(WORK)
        await wait_until(lambda: bench.station.answers)
    assert bench.station.outcomes() == {WORK.command_id: "the command was stopped before it was started"}
    assert controller.begun == []


async def test_lost_joining_is_repeated_if_the_settings_allow_it(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, repetition="repeatable") as bench:
        await begun(bench, wait_until)
        bench.station.unanswered = [WORK]
        async with bench.device.away():
            pass
        await wait_until(lambda: len(controller.begun) == 2)
    assert bench.equipment.repetition_of(WORK.type_id) is Repetition.REPEATABLE
    assert bench.station.begun == []


async def test_result_after_a_stop_reaches_the_station_before_it_is_acknowledged(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
        # The bolt ends at its time limit: the job has failed, and the result is good.
        bench.station.stopped_meanwhile = {WORK.command_id}
        bench.station.failures = [Unavailable("the store is away")]
        await controller.end_joining()
        await wait_until(lambda: not bench.station.failures)
        assert controller.acknowledged == []
        await wait_until(lambda: controller.acknowledged)
        assert bench.station.outcomes()[WORK.command_id]["evaluation"] == "OK"


async def test_unsolicited_result_is_reported_but_not_acknowledged(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await controller.end_joining()
        await wait_until(lambda: bench.station.late_results)
        assert [(result.scope, result.command_id) for result in bench.station.late_results] == [("station-1", None)]
    assert controller.acknowledged == []


async def test_stop_is_confirmed_or_its_reason_reported(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with controller.without("EnableAsset"), opener() as bench:
        controller.enabled = True
        await begun(bench, wait_until)
        controller.accepts_abort = False
        await bench.equipment.stop(WORK)
        controller.accepts_abort = True
        await bench.equipment.stop(WORK)
    assert bench.station.stops == [
        (WORK.command_id, "the tool may still be enabled: AbortJoiningProcess: a joining is not aborted"),
        (WORK.command_id, None),
    ]


@pytest.mark.parametrize("missing", [(), ("GetIdentifiers",)])
async def test_unconfirmed_start_is_not_sent_again(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil, missing: tuple[str, ...]
) -> None:
    async with controller.without(*missing), opener() as bench:
        controller.fault = IjtFault.CUT
        bench.station.unanswered = [replace(WORK, begun=True)]
        await begun(bench, wait_until)
        await wait_until(lambda: not bench.equipment.connected)
        await wait_until(lambda: bench.equipment.connected)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
    assert [answer.error for answer in bench.station.answers] == [None]
    assert (controller.begun, controller.declined) == ([SPINDLE], [])


async def test_stop_locks_a_tool_waiting_for_the_operator_trigger(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(BY_TRIGGER)
        await wait_until(lambda: controller.selected)
        await bench.equipment.stop(BY_TRIGGER)
    assert is_safe(controller)


async def test_stop_continues_after_a_declined_abort(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
        controller.accepts_abort = False
        await bench.equipment.stop(WORK)
    assert is_safe(controller)
    assert controller.stopped == [SPINDLE]


async def test_stop_of_an_old_command_does_not_stop_the_next_one(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await answered(bench, wait_until)
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(controller.begun) == 2)
        await bench.equipment.stop(WORK)
        await bench.device.finish()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
    assert controller.stopped == []


async def test_tool_of_an_operator_is_locked_after_its_result(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await bench.equipment.send(BY_TRIGGER)
        await wait_until(lambda: controller.selected)
        await controller.end_joining()
        await wait_until(lambda: bench.station.answers)
        await wait_until(lambda: is_safe(controller))


async def test_next_result_is_taken_from_a_controller_that_does_not_echo(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, correlation="next") as bench:
        controller.echoes_identifiers = False
        with capture_logs() as logs:
            answer = await answered(bench, wait_until)
    assert answer.data["torque"] == {"value": 85.2, "unit": "N·m"}
    assert "result without command id" in {entry["event"] for entry in logs}


async def test_result_of_another_process_is_not_the_next_result(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until, correlation="next") as bench:
        controller.echoes_identifiers = False
        await bench.equipment.send(BY_TRIGGER)
        await wait_until(lambda: controller.selected)
        controller.selected = "P7 20Nm"
        await controller.end_joining()
        controller.selected = SPINDLE
        await controller.end_joining()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].data["torque"] == {"value": 85.2, "unit": "N·m"}


async def test_lost_event_is_polled_for_while_a_command_waits(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
        controller.fault = IjtFault.UNTOLD
        await controller.end_joining()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].error is None


async def test_restarted_gateway_does_not_repeat_a_running_joining(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
    station = RecordingStation()
    station.unanswered = [replace(WORK, begun=True)]
    async with open_ijt("wrench", settings(controller), station, SCOPES, times=TIMES) as equipment:
        await wait_until(lambda: equipment.connected)
        await controller.end_joining()
        await wait_until(lambda: station.answers)
    assert station.answers[0].error is None
    assert (controller.begun, controller.declined) == ([SPINDLE], [])


async def test_error_of_the_controller_at_work_aborts_the_joining(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    """The command failed, and the joining continued: the tool turned, without a command."""
    async with opener() as bench:
        await begun(bench, wait_until)
        await controller.report_error("the spindle is hot")
        await wait_until(lambda: bench.station.answers)
        assert (controller.stopped, controller.enabled) == ([SPINDLE], False)
    assert bench.station.answers[0].error == "the controller reports an error: the spindle is hot"


async def test_declined_abort_after_an_error_is_in_the_answer(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with controller.without("EnableAsset"), equipped(controller, wait_until) as bench:
        controller.accepts_abort, controller.enabled = False, True
        await begun(bench, wait_until)
        await controller.report_error("the spindle is hot")
        await wait_until(lambda: bench.station.answers)
    error = bench.station.answers[0].error or ""
    assert str(error).startswith("the controller reports an error: the spindle is hot; the tool may still be enabled")


async def test_started_joining_without_identifiers_of_the_controller_is_unknown(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    """After a lost connection nothing shows whether the joining still runs: the tool is made safe."""
    async with controller.without("GetIdentifiers"), equipped(controller, wait_until) as bench:
        await begun(bench, wait_until)
        bench.station.unanswered = [replace(WORK, begun=True)]
        async with bench.device.cut_off():
            pass
        await wait_until(lambda: bench.station.unknown)
        await wait_until(lambda: controller.stopped)
    assert (bench.station.answers, len(controller.begun)) == ([], 1)


async def test_result_that_cannot_be_read_is_unknown_and_the_tool_safe(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until) as bench:
        await begun(bench, wait_until)
        await controller.device.send_event(controller.store.events["ResultReady"], {"Result": ua.Variant("garbage")})
        await wait_until(lambda: bench.station.unknown)
        await wait_until(lambda: controller.stopped)
    assert "cannot be read" in str(bench.station.unknown[0].reason)
    assert [refused.kind for refused in bench.station.refused] == ["unreadable"]


async def test_result_that_cannot_be_read_as_an_event_is_read_by_its_id(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with equipped(controller, wait_until) as bench:
        await begun(bench, wait_until)
        controller.fault = IjtFault.UNTOLD
        await controller.end_joining()
        await controller.device.send_event(controller.store.events["ResultReady"], {"Result": ua.Variant("garbage")})
        await wait_until(lambda: bench.station.answers)
    assert (bench.station.answers[0].error, bench.station.unknown) == (None, [])


async def test_started_joining_is_unknown_when_identifiers_are_declined(
    controller: JoiningController, wait_until: WaitUntil
) -> None:
    """The method is gone after the connection: its call is declined, which failed the action before."""
    async with equipped(controller, wait_until) as bench, controller.without("GetIdentifiers"):
        await bench.equipment.send(replace(WORK, begun=True, offered_again=True))
        await wait_until(lambda: bench.station.unknown or bench.station.answers)
    assert (bench.station.answers, controller.begun) == ([], [])
