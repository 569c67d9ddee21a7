"""The order of results: by times without SequenceNumbers, and after a restart by the last durable SequenceNumber."""

from datetime import UTC, datetime
from typing import Any

import pytest

from edge.features.joining.state import ControllerState, ResultLimits
from edge.foundation.errors import Refused
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation
from tests.features.joining.test_collector import Mute, collector, reporter


def made_at(created: datetime, result_id: str) -> dict[str, Any]:
    """Return a result without identifiers and SequenceNumber."""
    return {"ResultMetaData": {"ResultId": result_id, "CreationTime": created}, "ResultContent": []}


@pytest.mark.parametrize("year", [1, 1601, 9999])
async def test_next_result_follows_one_whose_time_is_none(year: int) -> None:
    """Before, a single CreationTime in the year 9999 made every later result older than it."""
    results = collector(Mute(), ControllerState(), reporter(), correlation="next")
    for item in (datetime(2026, 11, 26, 12, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC)):
        await results.handle_live(made_at(item, f"R{item.year}"))
    results.expect(WORK)
    await results.handle_live(made_at(datetime(2026, 11, 26, 12, 0, 1, tzinfo=UTC), "own"))
    assert results.find(WORK)


async def test_next_result_is_found_after_its_clock_was_set_back() -> None:
    results = collector(Mute(), ControllerState(), reporter(), correlation="next")
    for created in (datetime(2099, 1, 1, tzinfo=UTC), datetime(2026, 11, 26, 12, tzinfo=UTC)):
        await results.handle_live(made_at(created, f"R{created.year}"))
    results.expect(WORK)
    await results.handle_live(made_at(datetime(2026, 11, 26, 12, 0, 1, tzinfo=UTC), "own"))
    assert results.find(WORK)


def own(number: int) -> dict[str, Any]:
    """Return a joining of the operator's own."""
    return {"ResultMetaData": {"ResultId": f"R{number}", "SequenceNumber": number}, "ResultContent": []}


class Stored(Mute):
    """A controller that sends its results by number and as the latest one, but not the one with the number 2."""

    def __init__(self, stored: dict[int, Any]) -> None:
        self.stored = stored
        self.ranges: list[tuple[int, int]] = []

    def __contains__(self, name: object) -> bool:
        return name in {"RequestResults", "GetLatestResult"}

    async def call(self, _: str, first: int, last: int) -> list[Any]:
        self.ranges.append((first, last))
        return []

    async def call_result_method(self, *_: object, output_count: int | None = None) -> list[Any]:
        return [0, self.stored[max(self.stored)]]


@pytest.mark.parametrize("is_skipped", [False, True])
async def test_results_beyond_a_gap_are_not_new_after_a_restart(*, is_skipped: bool) -> None:
    """Before, they were requested and counted again: the gap, here of a result too large to read, never closed."""
    station, stored = RecordingStation(), {number: own(number) for number in (1, 3, 4)}
    controller = Stored(stored)
    results = collector(controller, ControllerState(), reporter(station), station=station)
    await results.restore()
    for number, result in stored.items():
        await results.handle_live(result)
        if is_skipped and number == 3:
            await results.note_skipped(Refused("too_large", "a message of 70000 bytes was skipped"))
    assert (controller.ranges, len(station.late_results)) == ([(2, 2)], 3)
    restarted = collector(controller, ControllerState(), reporter(station), station=station)
    await restarted.restore()
    await restarted.catch_up()
    assert controller.ranges == ([(2, 2)] if is_skipped else [(2, 2), (2, 2)])
    assert len(station.late_results) == 3
    await restarted.handle_requested(own(2))
    assert len(station.late_results) == 4


async def test_search_for_a_result_does_not_reset_the_last_number() -> None:
    """Before, a restart after the search requested and reported the results from 0 on once more."""
    station, stored = RecordingStation(), {4: own(4)}
    state = ControllerState(last=4)
    results = collector(Stored(stored), state, reporter(station), ResultLimits(missed_seconds=0), station=station)
    await results.search(WORK)
    assert state.position() == "4"


async def test_requests_for_missing_results_are_bounded_on_each_connection() -> None:
    state, controller = ControllerState(last=100), Stored({100: own(100)})
    state.missing.numbers = set(range(1, 100, 2))
    await collector(controller, state, reporter()).catch_up()
    assert controller.ranges == [(number, number) for number in range(61, 100, 2)]
