"""Events of a device without a command."""

from edge.equipment.own_events import OwnEvents
from edge.features.vision.simulated.camera import open_vision
from edge.station.equipment import NoRoom, Task
from tests.conftest import WaitUntil
from tests.equipment.inspection import equipped
from tests.equipment.recording_station import RecordingStation


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


async def test_image_without_a_command_and_error_are_events(wait_until: WaitUntil) -> None:
    """The picture that a job has used is not a late result; one that no job uses is kept as such."""
    named = {"result": "com.example.seen.v1", "error": "com.example.broken.v1"}
    async with open_vision(delay=None) as camera, equipped(camera, wait_until, events=named) as bench:
        bench.station.task = Task("J1", "look", {})
        await camera.trigger()
        await camera.end_job()
        await wait_until(lambda: bench.station.events)
        assert bench.station.late_results == []
        bench.station.task = None
        await camera.trigger("by hand 2")
        await camera.end_job()
        await wait_until(lambda: bench.station.late_results)
        await camera.break_down()
        await wait_until(lambda: len(bench.station.events) == 3)
    equipment_event, _, broken = bench.station.events
    assert (equipment_event.type_id, equipment_event.data["meas_id"]) == ("com.example.seen.v1", "by hand")
    assert (broken.type_id, broken.data) == ("com.example.broken.v1", {"state": "Error"})
