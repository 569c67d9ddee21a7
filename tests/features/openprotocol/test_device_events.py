"""Events of a tool without a command."""

from edge.features.openprotocol.device import ToolEvents
from edge.foundation.text import Text
from edge.station.equipment import Task
from tests.equipment.recording_station import RecordingStation


async def test_event_is_reported_where_the_settings_name_its_type() -> None:
    station = RecordingStation()
    station.task = Task("J1", "scan", {})
    events = ToolEvents("wrench", "tcp://host", {"identifier": "com.example.scanned.v1"}, station, "station-1")
    assert await events.report("identifier", {"identifier": "A"})
    assert not await events.report("alarm", {"code": "E1"})
    assert [event.type_id for event in station.events] == ["com.example.scanned.v1"]


async def test_unreadable_message_is_recorded() -> None:
    station = RecordingStation()
    await ToolEvents("wrench", "tcp://host", {}, station, "station-1").refuse(Text.of("no number"), "0061")
    assert [refused.payload for refused in station.refused] == [b"0061"]
