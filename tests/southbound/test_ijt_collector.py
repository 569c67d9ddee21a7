"""Results are found again, missing results are requested, and stored results are acknowledged."""

import asyncio
from contextlib import suppress
from typing import Any, cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.errors import Refused, Unavailable
from edge.sim.ijt import JoiningController
from edge.sim.ijt_fault import IjtFault
from edge.southbound.ijt import open_ijt
from edge.southbound.ijt_collector import ControllerState, JoiningCollector, ResultLimits
from edge.southbound.ijt_methods import IjtMethods
from edge.southbound.late_result import LateResults
from tests.conftest import WaitUntil
from tests.southbound.contract import NEXT, SCOPES, WORK, Opener
from tests.southbound.recording_station import RecordingStation
from tests.southbound.tightening import TIMES, answered, begun, equipped, settings

BATCH = 3

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


async def test_a_result_is_acknowledged_once_its_answer_is_stored(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        result_id = (await answered(bench, wait_until)).data["result_id"]
        await wait_until(lambda: result_id in controller.acknowledged)


async def test_acknowledge_none_acknowledges_no_result(controller: JoiningController, wait_until: WaitUntil) -> None:
    async with equipped(controller, wait_until, acknowledge="none") as bench:
        result_id = (await answered(bench, wait_until)).data["result_id"]
        await bench.equipment.send(NEXT)
        await wait_until(lambda: len(controller.begun) == 2)
    assert result_id not in controller.acknowledged


async def test_missing_sequence_numbers_are_requested(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await controller.end_joining()
        await begun(bench, wait_until)
        controller.fault = IjtFault.UNTOLD
        await controller.end_joining()
        controller.fault = IjtFault.NONE
        await controller.end_joining()
        await wait_until(lambda: bench.station.answers)
    assert bench.station.answers[0].data["torque"] == {"value": 85.2, "unit": "N·m"}


async def test_restarted_gateway_finds_a_result_that_is_not_the_latest(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
    await controller.end_joining()
    await controller.end_joining()
    station = RecordingStation()
    station.unanswered = [WORK]
    async with open_ijt("wrench", settings(controller), station, SCOPES, times=TIMES):
        await wait_until(lambda: station.answers)
    assert station.answers[0].data["torque"] == {"value": 85.2, "unit": "N·m"}
    assert len(controller.begun) == 1


async def test_result_of_a_stopped_command_is_acknowledged(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        await begun(bench, wait_until)
        before = len(controller.acknowledged)
        bench.station.stopped_meanwhile = {WORK.command_id}
        await bench.equipment.stop(WORK)
        await wait_until(lambda: len(controller.acknowledged) > before)
    assert bench.station.answers == []


async def test_results_missed_while_disconnected_are_requested_by_number(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with controller.without("RequestUnacknowledgedResults"), opener() as bench:
        await answered(bench, wait_until)
        await bench.equipment.send(NEXT)
        bench.station.unanswered = [NEXT]
        await wait_until(lambda: len(bench.device.begun) == 2)
        async with bench.device.cut_off():
            await controller.end_joining()
            await controller.end_joining()
        await wait_until(lambda: NEXT.command_id in bench.station.outcomes())
    assert len(controller.begun) == 2


async def test_joining_that_the_controller_cannot_report_is_awaited_not_repeated(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with controller.without("GetIdentifiers"), opener() as bench:
        await begun(bench, wait_until)
        bench.station.unanswered = [WORK]
        async with bench.device.cut_off():
            pass
        await wait_until(lambda: bench.equipment.connected)
        await bench.device.finish()
        await wait_until(lambda: bench.station.answers)
    assert len(controller.begun) == 1


async def test_all_results_of_a_batch_are_acknowledged_with_it(
    opener: Opener, controller: JoiningController, wait_until: WaitUntil
) -> None:
    async with opener() as bench:
        batch = replace(WORK, parameters={"joining_process_id": "P1 85Nm", "classification": "batch"})
        await bench.equipment.send(batch)
        await wait_until(lambda: bench.device.begun)
        before = len(controller.acknowledged)
        identifiers = list(controller.identifiers)
        await controller.end_joining()
        controller.identifiers = identifiers
        await controller.end_joining(classification=BATCH)
        await wait_until(lambda: len(controller.acknowledged) == before + 2)
    assert [each.command_id for each in bench.station.answers] == [WORK.command_id]


class Mute:
    """The methods of a controller without methods."""

    def __contains__(self, name: object) -> bool:
        return False


def result_of(command_id: str, result_id: str, **content: Any) -> dict[str, Any]:
    entity = {"Name": "CommandID", "EntityId": command_id}
    return {"ResultMetaData": {"ResultId": result_id, "AssociatedEntities": [entity]}, "ResultContent": [content]}


def reporter(station: RecordingStation | None = None) -> LateResults:
    return LateResults("wrench", "station-1", station or RecordingStation())


def results_of_nobody(limits: ResultLimits = ResultLimits()) -> JoiningCollector:  # noqa: B008 - frozen
    methods, state = cast("IjtMethods", Mute()), ControllerState()
    return JoiningCollector(methods, state, reporter(), acknowledge=False, limits=limits)


@pytest.mark.parametrize("entities", ["J1", [None], [{"EntityId": {}}], [{"Name": "CommandID"}], [{"Name": "VIN"}]])
async def test_result_with_invalid_entities_does_not_hide_others(entities: Any) -> None:
    results = results_of_nobody()
    with suppress(Refused):
        await results.handle_live({"ResultMetaData": {"ResultId": "R0", "AssociatedEntities": entities}})
    mine = result_of(WORK.command_id, "R1")
    await results.handle_live(mine)
    assert results.find(WORK) == mine


async def test_uncollected_results_are_bounded() -> None:
    results = results_of_nobody(ResultLimits(kept_bytes=11_500))
    for number in range(20):
        await results.handle_live(result_of(WORK.command_id, f"R{number}", Vendor="x" * 1000))
    found = results.find(WORK)
    assert found
    assert found["ResultMetaData"]["ResultId"] == "R11"


async def test_newest_result_larger_than_the_memory_limit_is_kept() -> None:
    results = results_of_nobody(ResultLimits(kept_bytes=1000))
    for number in range(2):
        await results.handle_live(result_of(WORK.command_id, f"R{number}", Vendor="x" * 2000))
    found = results.find(WORK)
    assert found
    assert found["ResultMetaData"]["ResultId"] == "R1"


@pytest.mark.parametrize("open_stop", [False, True])
async def test_latest_result_of_an_abandoned_command_is_late_after_a_restart(*, open_stop: bool) -> None:
    """Without an open stop it was answered before the restart. A controller need not report results again."""
    station, latest = RecordingStation(), result_of(WORK.command_id, "R9")
    station.stopped_meanwhile.add(WORK.command_id)
    station.open_stops |= {WORK.command_id} if open_stop else set()

    class Latest(Mute):
        def __contains__(self, name: object) -> bool:
            return name == "GetLatestResult"

        async def call_result_method(self, *_: object, output_count: int | None = None) -> list[Any]:
            return [0, latest]

    methods = cast("IjtMethods", Latest())
    await JoiningCollector(methods, ControllerState(), reporter(station), acknowledge=False).catch_up()
    assert [each.command_id for each in station.late_results] == ([WORK.command_id] if open_stop else [])
    assert station.answers == []


async def test_missed_results_received_before_the_next_loss_are_not_requested() -> None:
    class Asked(Mute):
        def __init__(self) -> None:
            self.ranges: list[tuple[int, int]] = []

        def __contains__(self, name: object) -> bool:
            return name in {"RequestResults", "GetLatestResult"}

        async def call(self, _: str, first: int, last: int) -> list[Any]:
            self.ranges.append((first, last))
            raise Unavailable("it sent more than could be received")

        async def call_result_method(self, *_: object, output_count: int | None = None) -> list[Any]:
            return [0, {"ResultMetaData": {"ResultId": "R9", "SequenceNumber": 9}}]

    asked, memory = Asked(), ControllerState(last=1)
    for came in (range(2, 5), range(5, 7)):
        results = JoiningCollector(cast("IjtMethods", asked), memory, reporter(), acknowledge=False)
        with pytest.raises(Unavailable):
            await results.catch_up(WORK)
        for number in came:
            raw = result_of(WORK.command_id if number == 3 else "J0", f"R{number}")
            raw["ResultMetaData"]["SequenceNumber"] = number
            await results.handle_requested(raw)
    assert asked.ranges == [(2, 8), (5, 8)]
    assert memory.last == 6
    found = JoiningCollector(cast("IjtMethods", asked), memory, reporter(), acknowledge=False).find(WORK)
    assert found
    assert found["ResultMetaData"]["ResultId"] == "R3"


async def test_search_does_not_wait_for_numbers_before_the_first() -> None:
    """A controller that numbers from 1 has sent all of them; the wait for one more made commands time out."""

    class Numbered(Mute):
        def __contains__(self, name: object) -> bool:
            return name == "RequestResults"

        async def call(self, _: str, first: int, last: int) -> list[Any]:
            for number in range(max(1, first), last + 1):
                raw = result_of("J0", f"R{number}")
                raw["ResultMetaData"]["SequenceNumber"] = number
                await results.handle_requested(raw)
            return []

    methods, memory = cast("IjtMethods", Numbered()), ControllerState(last=3)
    results = JoiningCollector(methods, memory, reporter(), acknowledge=False, limits=ResultLimits(missed_seconds=0))
    with capture_logs() as logs:
        await results.search(WORK)
    assert "missed results incomplete" not in [each["event"] for each in logs]


async def test_result_interrupted_by_a_lost_connection_is_requested_on_the_next() -> None:
    class Slow(RecordingStation):
        async def is_outstanding(self, command_id: str) -> bool:
            raise asyncio.CancelledError

    memory = ControllerState(last=1)
    raw = result_of(WORK.command_id, "R2")
    raw["ResultMetaData"]["SequenceNumber"] = 2
    with pytest.raises(asyncio.CancelledError):
        await JoiningCollector(cast("IjtMethods", Mute()), memory, reporter(Slow()), acknowledge=False).handle_live(raw)
    assert memory.last == 1


async def test_sequence_numbers_that_jump_or_restart_are_followed() -> None:
    class Asked(Mute):
        def __init__(self) -> None:
            self.ranges: list[tuple[int, int]] = []

        def __contains__(self, name: object) -> bool:
            return name == "RequestResults"

        async def call(self, _: str, first: int, last: int) -> list[Any]:
            self.ranges.append((first, last))
            return []

    asked, memory = Asked(), ControllerState()
    results = JoiningCollector(cast("IjtMethods", asked), memory, reporter(), acknowledge=False)
    for number in (1, 4_000_000_000, 7, 8, -9):
        await results.handle_live({"ResultMetaData": {"ResultId": f"R{number}", "SequenceNumber": number}})
    assert asked.ranges == [(3_999_999_000, 3_999_999_999)]
    assert memory.last == -9
