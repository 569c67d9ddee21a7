"""What happens at a camera without a command is an event of the station."""

from edge.features.vision.simulated.camera import open_vision
from edge.station.equipment import Task
from tests.conftest import WaitUntil
from tests.equipment.inspection import equipped


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
