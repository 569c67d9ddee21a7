"""Results without SequenceNumbers are ordered by times, which may say nothing or be set back."""

from datetime import UTC, datetime
from typing import Any

import pytest

from edge.southbound.ijt_state import ControllerState
from tests.southbound.contract import WORK
from tests.southbound.test_ijt_collector import Mute, collector, reporter


def made_at(created: datetime, result_id: str) -> dict[str, Any]:
    """Return a result without identifiers and SequenceNumber."""
    return {"ResultMetaData": {"ResultId": result_id, "CreationTime": created}, "ResultContent": []}


@pytest.mark.parametrize("year", [1, 1601, 9999])
async def test_next_result_follows_one_whose_time_is_none(year: int) -> None:
    """Before, a single CreationTime in the year 9999 made every later result older than it."""
    results = collector(Mute(), ControllerState(), reporter(), correlation="next")
    for each in (datetime(2026, 11, 26, 12, tzinfo=UTC), datetime(year, 12, 31, tzinfo=UTC)):
        await results.handle_live(made_at(each, f"R{each.year}"))
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
