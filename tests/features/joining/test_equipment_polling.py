"""A result whose event was lost is found by its identity: its SequenceNumber may be missing, 0, or come again."""

import math
from typing import Any

import pytest

from edge.features.joining.state import ControllerState
from edge.foundation.errors import Refused
from tests.equipment.contract import NEXT, WORK
from tests.equipment.recording_station import RecordingStation
from tests.features.joining.test_collector import Mute, collector, numbered, reporter


class Latest(Mute):
    """A controller that reports its latest result; without one it answers with an error."""

    def __init__(self) -> None:
        self.latest: Any = None

    def __contains__(self, name: object) -> bool:
        return name == "GetLatestResult"

    async def call_result_method(self, *_: object, output_count: int | None = None) -> list[Any]:
        if self.latest is None:
            raise Refused("device", "error 1")
        return [0, self.latest]


@pytest.mark.parametrize("number", [None, 0, 1])
async def test_result_with_the_number_of_the_last_one_is_polled(number: int | None) -> None:
    """A controller may send 0 for all of them, or number from 1 again after a power cut."""
    controller = Latest()
    results = collector(controller, ControllerState(), reporter())
    await results.catch_up()
    await results.handle_live(numbered(WORK.command_id, "R1", number))
    controller.latest = numbered(NEXT.command_id, "R2", number)
    await results.poll(NEXT)
    assert results.find(NEXT)


async def test_result_is_polled_after_its_partial_result_of_the_same_number() -> None:
    controller = Latest()
    results = collector(controller, ControllerState(), reporter())
    controller.latest = numbered(WORK.command_id, "R1", 1, IsPartial=True)
    await results.handle_live(controller.latest)
    await results.poll(WORK)
    assert results.find(WORK) is None
    controller.latest = numbered(WORK.command_id, "R1", 1, IsPartial=False)
    await results.poll(WORK)
    assert results.find(WORK)


async def test_first_result_of_a_controller_is_reported_after_a_lost_connection() -> None:
    """The controller had none when it was connected first; the bolt was tightened without a connection."""
    station, state, controller = RecordingStation(), ControllerState(), Latest()
    await collector(controller, state, reporter(station)).catch_up()
    controller.latest = numbered("", "R1", 1)
    for _ in range(2):
        await collector(controller, state, reporter(station)).catch_up()
    assert [result.key for result in station.late_results] == ["R1"]


@pytest.mark.parametrize("number", [None, 7])
async def test_result_before_the_first_connection_is_never_reported(number: int | None) -> None:
    station, state, controller = RecordingStation(), ControllerState(), Latest()
    controller.latest = numbered("", "R7", number)
    for _ in range(3):
        results = collector(controller, state, reporter(station))
        await results.catch_up()
        await results.poll(WORK)
    assert station.late_results == []


async def test_polled_result_that_is_not_a_number_is_reported_once() -> None:
    station, controller = RecordingStation(), Latest()
    results = collector(controller, ControllerState(), reporter(station))
    await results.catch_up()
    for _ in range(2):
        # A new answer has a new value: not a number is unequal to itself.
        value = {"MeasuredValue": math.nan * 1.0, "PhysicalQuantity": 2}
        controller.latest = {"ResultMetaData": {"ResultId": "R1"}, "ResultContent": [{"OverallResultValues": [value]}]}
        await results.poll(WORK)
    assert len(station.late_results) == 1


async def test_polled_result_of_the_command_at_work_that_is_unreadable_is_known() -> None:
    """Its outcome is unknown then; a stored one of another command does not matter."""
    state, controller = ControllerState(), Latest()
    results = collector(controller, state, reporter())
    state.ledger.current = WORK.command_id
    await results.catch_up()
    controller.latest = numbered(NEXT.command_id, "R1", 1, CreationTime=3)
    await results.poll(WORK)
    assert results.unreadable == ""
    controller.latest = numbered(WORK.command_id, "R2", 2, CreationTime=3)
    await results.poll(WORK)
    assert "CreationTime" in results.unreadable


async def test_requested_result_that_is_unreadable_is_known() -> None:
    state = ControllerState()
    results = collector(Mute(), state, reporter())
    state.ledger.current = WORK.command_id
    with pytest.raises(Refused):
        await results.handle_requested(numbered(WORK.command_id, "R2", 2, CreationTime=3))
    assert "CreationTime" in results.unreadable
