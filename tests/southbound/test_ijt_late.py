"""Results that no command waits for reach the station."""

from datetime import UTC, datetime

from edge.southbound.ijt_late import LateResults
from edge.station.equipment import LateResult
from tests.southbound.contract import WORK, RecordingStation

AT = datetime(2026, 11, 22, tzinfo=UTC)


async def test_result_of_a_command_is_its_answer() -> None:
    station = RecordingStation()
    entity = {"Name": "CommandID", "EntityId": WORK.command_id}
    result = {"ResultMetaData": {"ResultId": "T1", "ResultEvaluation": 1, "AssociatedEntities": [entity]}}
    await LateResults("urn:wrench", "station-1", station).report(result)
    assert station.said()[WORK.command_id]["evaluation"] == "OK"


async def test_result_without_a_command_is_named_by_its_id_and_time() -> None:
    station = RecordingStation()
    result = {"ResultMetaData": {"ResultId": "T1", "ResultEvaluation": 2, "CreationTime": AT}}
    await LateResults("urn:wrench", "station-1", station).report(result)
    (late,) = station.late_results
    assert isinstance(late, LateResult)
    assert (late.source, late.scope, late.command_id) == ("urn:wrench", "station-1", None)
    assert (late.key, late.created_at) == (f"T1 {AT.isoformat()}", 1000 * AT.timestamp())
    assert late.data["evaluation"] == "NotOK"
