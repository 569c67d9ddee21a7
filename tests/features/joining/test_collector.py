"""Results are found again, missing results are requested, and stored results are acknowledged."""

import asyncio
from contextlib import suppress
from typing import Any, Literal, cast

import pytest
from msgspec.structs import replace
from structlog.testing import capture_logs

from edge.equipment.remembered_text import RememberedText
from edge.equipment.unclaimed import LateResults
from edge.features.joining.collector import LAST_NUMBER, LAST_STARTED, JoiningCollector
from edge.features.joining.equipment import open_ijt
from edge.features.joining.late import LateJoinings
from edge.features.joining.methods import IjtMethods
from edge.features.joining.programs import JoiningPrograms
from edge.features.joining.simulated.controller import IjtFault, JoiningController
from edge.features.joining.state import ControllerState, ResultLimits
from edge.foundation.errors import Refused, Unavailable
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, SCOPES, WORK, Opener
from tests.equipment.recording_station import RecordingStation
from tests.equipment.tightening import TIMES, answered, begun, equipped, settings

BATCH = 3
_LIMITS = ResultLimits()

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
        # A result that a poll and an event report is acknowledged twice.
        await wait_until(lambda: len(set(controller.acknowledged[before:])) == 2)
    assert [answer.command_id for answer in bench.station.answers] == [WORK.command_id]


class Mute:
    """The methods of a controller without methods."""

    def __contains__(self, name: object) -> bool:
        return False


def result_of(command_id: str, result_id: str, **content: Any) -> dict[str, Any]:
    entity = {"Name": "CommandID", "EntityId": command_id}
    return {"ResultMetaData": {"ResultId": result_id, "AssociatedEntities": [entity]}, "ResultContent": [content]}


def reporter(station: RecordingStation | None = None) -> LateResults:
    return LateResults("wrench", "station-1", station or RecordingStation())


async def use_nothing(_: object, __: str) -> bool:
    return False


async def add_nothing(_: str, __: object, ___: object) -> None:
    """Add nothing to the data of a late result."""


def collector(
    methods: object,
    state: ControllerState,
    late: LateResults,
    limits: ResultLimits = _LIMITS,
    station: RecordingStation | None = None,
    correlation: Literal["command_id", "next"] = "command_id",
) -> JoiningCollector:
    """Return a collector that acknowledges nothing, at a controller that lists no programs."""
    calls = cast("IjtMethods", methods)
    memory, started = (
        RememberedText(station or RecordingStation(), "wrench", name) for name in (LAST_NUMBER, LAST_STARTED)
    )
    programs = JoiningPrograms(calls, "")
    reports = LateJoinings(late, state.ledger, use_nothing, add_nothing)
    return JoiningCollector(
        calls,
        state,
        late,
        memory,
        started,
        acknowledge=False,
        programs=programs,
        correlation=correlation,
        late=reports,
        limits=limits,
    )


def results_of_nobody(limits: ResultLimits = _LIMITS) -> JoiningCollector:
    return collector(Mute(), ControllerState(), reporter(), limits)


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
    commands = [replace(WORK, command_id=f"J{number}/work/1") for number in range(20)]
    for command in commands:
        await results.handle_live(result_of(command.command_id, "R", Vendor="x" * 1000))
    kept = [number for number, command in enumerate(commands) if results.find(command)]
    assert kept == [*range(10, 20)]


async def test_newest_result_larger_than_the_memory_limit_is_kept() -> None:
    results = results_of_nobody(ResultLimits(kept_bytes=1000))
    for command in (NEXT, WORK):
        await results.handle_live(result_of(command.command_id, "R", Vendor="x" * 2000))
    assert results.find(WORK)
    assert not results.find(NEXT)


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

    methods = Latest()
    await collector(methods, ControllerState(), reporter(station)).catch_up()
    assert [result.command_id for result in station.late_results] == ([WORK.command_id] if open_stop else [])
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
        results = collector(asked, memory, reporter())
        with pytest.raises(Unavailable):
            await results.catch_up(WORK)
        for number in came:
            raw = result_of(WORK.command_id if number == 3 else "J0", f"R{number}")
            raw["ResultMetaData"]["SequenceNumber"] = number
            await results.handle_requested(raw)
    assert asked.ranges == [(2, 8), (5, 8)]
    assert memory.last == 6
    found = collector(asked, memory, reporter()).find(WORK)
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

    methods, memory = Numbered(), ControllerState(last=3)
    results = collector(methods, memory, reporter(), ResultLimits(missed_seconds=0))
    with capture_logs() as logs:
        await results.search(WORK)
    assert "missed results incomplete" not in [entry["event"] for entry in logs]


async def test_result_interrupted_by_a_lost_connection_is_requested_on_the_next() -> None:
    class Slow(RecordingStation):
        async def is_outstanding(self, command_id: str) -> bool:
            raise asyncio.CancelledError

    memory = ControllerState(last=1)
    raw = result_of(WORK.command_id, "R2")
    raw["ResultMetaData"]["SequenceNumber"] = 2
    with pytest.raises(asyncio.CancelledError):
        await collector(Mute(), memory, reporter(Slow())).handle_live(raw)
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
    results = collector(asked, memory, reporter())
    for number in (1, 4_000_000_000, 7, 8, -9):
        await results.handle_live({"ResultMetaData": {"ResultId": f"R{number}", "SequenceNumber": number}})
    assert asked.ranges == [(3_999_999_000, 3_999_999_999)]
    assert memory.last == -9


def numbered(command_id: str, result_id: str, number: int | None = None, **meta: Any) -> dict[str, Any]:
    raw = result_of(command_id, result_id)
    raw["ResultMetaData"] |= ({"SequenceNumber": number} if number is not None else {}) | meta
    return raw


async def test_reused_result_id_is_the_result_of_the_open_command() -> None:
    results = results_of_nobody()
    await results.handle_live(numbered(WORK.command_id, "R1"))
    await results.settle(WORK)
    await results.handle_live(numbered(NEXT.command_id, "R1"))
    assert results.find(NEXT)


async def test_reused_result_id_of_own_joinings_is_reported_each_time() -> None:
    station = RecordingStation()
    results = collector(Mute(), ControllerState(), reporter(station))
    for number in (1, 2, 1):
        raw = {"ResultMetaData": {"ResultId": "R1", "SequenceNumber": number}}
        await results.handle_live(raw)
    assert len({result.key for result in station.late_results}) == len(station.late_results) == 2


async def test_second_result_of_a_command_is_kept_as_late() -> None:
    station = RecordingStation()
    results = collector(Mute(), ControllerState(), reporter(station))
    for number in (1, 2):
        await results.handle_live(numbered(WORK.command_id, f"R{number}", number))
    assert station.late_results == []
    await results.settle(WORK)
    await results.handle_live(numbered(WORK.command_id, "R3", 3))
    assert [(result.key, result.command_id) for result in station.late_results] == [
        ("R2", WORK.command_id),
        ("R3", WORK.command_id),
    ]


async def test_result_of_another_process_leaves_the_command_waiting() -> None:
    station = RecordingStation()
    results = collector(Mute(), ControllerState(), reporter(station))
    results.claim(WORK)
    raw = numbered(WORK.command_id, "R1", 1)
    raw["ResultMetaData"]["AssociatedEntities"].append({"Name": "P", "EntityId": "P2 10Nm", "EntityType": 26})
    await results.handle_live(raw)
    assert results.find(WORK) is None
    assert [(result.command_id, result.reason != "") for result in station.late_results] == [(WORK.command_id, True)]
    await results.handle_live(numbered(WORK.command_id, "R2", 2))
    assert results.find(WORK)


async def test_last_number_survives_a_restart_of_the_gateway() -> None:
    station, ranges = RecordingStation(), list[tuple[int, int]]()

    class Asked(Mute):
        def __contains__(self, name: object) -> bool:
            return name in {"RequestResults", "GetLatestResult"}

        async def call(self, _: str, first: int, last: int) -> list[Any]:
            ranges.append((first, last))
            raise Refused("device", "later")

        async def call_result_method(self, *_: object, output_count: int | None = None) -> list[Any]:
            return [0, {"ResultMetaData": {"ResultId": "R9", "SequenceNumber": 9}}]

    results = collector(Asked(), ControllerState(), reporter(station), station=station)
    await results.restore()
    for command, number in ((WORK, 4), (NEXT, 5)):
        await results.handle_live(numbered(command.command_id, f"R{number}", number))
        await results.settle(command)
    await results.handle_live(numbered("J3/work/1", "R6", 6))
    restarted = collector(Asked(), ControllerState(), reporter(station), station=station)
    await restarted.restore()
    await restarted.catch_up()
    # The result with the number 6 was not durable.
    assert ranges == [(6, 8)]


async def test_result_that_a_poll_finds_while_its_event_is_handled_is_kept_once() -> None:
    class Slow(RecordingStation):
        async def is_outstanding(self, command_id: str) -> bool:
            await asyncio.sleep(0)
            return True

    state = ControllerState()
    results = collector(Mute(), state, reporter(Slow()))
    raw = numbered(WORK.command_id, "R1", 1)
    await asyncio.gather(results.handle_live(raw), results.handle_requested(raw))
    assert len(state.ledger.unsettled()) == 1
