"""Results without a waiting command are reported to the station."""

from datetime import UTC, datetime
from typing import Any

import pytest
from structlog.testing import capture_logs

from edge.equipment.unclaimed import LateResults, OwnEvents
from edge.foundation.errors import Unavailable
from edge.station.equipment import LateResult, NoRoom, Task
from tests.equipment.contract import WORK
from tests.equipment.recording_station import RecordingStation

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


async def test_each_kept_result_is_logged_by_its_kind_and_reason() -> None:
    reports = LateResults("wrench", "station-1", RecordingStation())
    with capture_logs() as logs:
        await reports.keep("T1", AT, None, DATA, reason="its program is not the commanded one")
        await reports.keep("T2", AT, WORK.command_id, DATA, reason="another spindle made it")
        await reports.keep("T3", AT, WORK.command_id, DATA)
    kinds = [(entry["event"], entry["result"], entry.get("reason")) for entry in logs]
    assert kinds == [
        ("unsolicited result", "T1", "its program is not the commanded one"),
        ("unsolicited result", "T2", "another spindle made it"),
        ("late result", "T3", None),
    ]


async def test_late_result_is_retried_until_the_station_stores_it() -> None:
    station = RecordingStation()
    station.failures = [Unavailable("the store is away")]
    await LateResults("camera", "station-1", station).report_surely("R1", None, None, DATA)
    assert [result.key for result in station.late_results] == ["R1"]


async def test_command_counts_as_waiting_while_the_store_cannot_answer() -> None:
    class Away(RecordingStation):
        async def is_outstanding(self, command_id: str) -> bool:
            raise Unavailable("the store is away")

    assert await LateResults("wrench", "station-1", Away()).is_awaited(WORK.command_id)


async def test_result_that_another_gateway_has_stored_changes_nothing() -> None:
    """Both gateways get the event of a device; the second one logs no late result, and fetches no file."""
    station = RecordingStation()
    station.stored_results.add("T1")
    with capture_logs() as logs:
        await LateResults("wrench", "station-1", station).report("T1", AT, WORK.command_id, DATA, never)
    assert (station.answers, station.late_results) == ([], [])
    assert station.stops == [(WORK.command_id, None)]
    assert [(entry["event"], entry["log_level"]) for entry in logs] == [("result stored already", "info")]


async def never(_: Any) -> None:
    pytest.fail("the file of a stored result is fetched again")


@pytest.mark.parametrize("kept", [False, True], ids=["answer", "given up"])
async def test_lost_connection_costs_the_file_of_a_late_result_only(*, kept: bool) -> None:
    async def lose(_: Any) -> None:
        raise Unavailable("lost")

    station = RecordingStation()
    reporter = LateResults("wrench", "station-1", station)
    await (reporter.keep if kept else reporter.report)("T1", AT, WORK.command_id, dict(DATA), lose)
    (found,) = [answer.data for answer in station.answers] + [result.data for result in station.late_results]
    assert found == DATA | {"file": {"error": "the file of a late result was not fetched: lost"}}


async def test_only_configured_kinds_are_reported_and_their_use_is_returned() -> None:
    station = RecordingStation()
    events = OwnEvents("eye", {"result": "com.example.seen.v1"}, station, "station-1")
    assert not await events.report("error", {})
    assert not await events.report("result", {"n": 1}, "result 1")
    station.task = Task("J1", "look", {})
    assert await events.report("result", {"n": 2})
    assert [(event.type_id, event.scope) for event in station.events] == [("com.example.seen.v1", "station-1")] * 2
    assert station.events[0].event_id == "result 1"


async def test_event_without_room_is_recorded_as_refused_and_ends_no_connection() -> None:
    """A scan too many ended the connection of a controller, again and again for 25 hours."""
    station = RecordingStation()
    station.failures = [NoRoom("the store holds 500 marks of events:wrench")]
    events = OwnEvents("wrench", {"identifier": "com.example.scanned.v1"}, station, "station-1")
    assert not await events.report("identifier", {"identifier": "VIN 1"}, "scan 1")
    (refused,) = station.refused
    assert (refused.kind, refused.event_id, refused.payload) == ("no_room", "scan 1", b'{"identifier":"VIN 1"}')
