"""Results without a waiting command are reported to the station."""

from datetime import UTC, datetime

from edge.errors import Unavailable
from edge.southbound.late_result import LateResults
from edge.station.equipment import LateResult
from tests.southbound.contract import WORK, RecordingStation

AT = datetime(2026, 11, 22, tzinfo=UTC)
DATA = {"evaluation": "OK"}


async def test_result_of_a_command_is_its_answer() -> None:
    station = RecordingStation()
    await LateResults("wrench", "station-1", station).report("T1", AT, WORK.command_id, DATA)
    assert station.outcomes() == {WORK.command_id: DATA}


async def test_result_without_a_command_has_its_id_and_time_as_key() -> None:
    station = RecordingStation()
    await LateResults("wrench", "station-1", station).report("T1", AT, None, DATA)
    source, key = "urn:microdcs-edge:equipment:wrench", f"T1 {AT.isoformat()}"
    created = round(1000 * AT.timestamp())
    assert station.late_results == [LateResult(source, key, "station-1", DATA, created_at=created)]


async def test_late_result_is_retried_until_the_station_stores_it() -> None:
    station = RecordingStation()
    station.failures = [Unavailable("the store is away")]
    await LateResults("camera", "station-1", station).report_surely("R1", None, None, DATA)
    assert [each.key for each in station.late_results] == ["R1"]


async def test_command_counts_as_waiting_while_the_store_cannot_answer() -> None:
    class Away(RecordingStation):
        async def is_outstanding(self, command_id: str) -> bool:
            raise Unavailable("the store is away")

    assert await LateResults("wrench", "station-1", Away()).is_awaited(WORK.command_id)
