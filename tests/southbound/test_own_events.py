"""Events of a device without a command."""

from edge.southbound.own_events import OwnEvents
from edge.station.equipment import Task
from tests.southbound.contract import RecordingStation


async def test_only_named_kinds_are_reported_and_use_is_returned() -> None:
    station = RecordingStation()
    events = OwnEvents("eye", {"result": "com.example.seen.v1"}, station, "station-1")
    assert not await events.report("error", {})
    assert not await events.report("result", {"n": 1}, "result 1")
    station.task = Task("J1", "look", {})
    assert await events.report("result", {"n": 2})
    assert [(each.type_id, each.scope) for each in station.events] == [("com.example.seen.v1", "station-1")] * 2
    assert station.events[0].event_id == "result 1"
