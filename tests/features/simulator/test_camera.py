"""Tests of the simulated camera against the equipment port of the gateway."""

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import open_equipment
from edge.features.simulator.camera import RESULTS, open_camera
from edge.links.mqtt import open_session
from edge.station.equipment import EquipmentEvent, Task
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation


class PatientStation(RecordingStation):
    """A station whose job accepts each type of event once, at its third arrival."""

    def __init__(self) -> None:
        super().__init__()
        self.given: set[str] = set()

    async def event(self, event: EquipmentEvent) -> Task | None:
        self.events.append(event)
        if (
            sum(equipment_event.type_id == event.type_id for equipment_event in self.events) < 3
            or event.type_id in self.given
        ):
            return None
        self.given.add(event.type_id)
        return Task("J1", "inspect", {})


async def test_camera_publishes_each_result_until_a_job_consumes_it(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    station = PatientStation()
    settings = MqttEquipmentSettings(type_ids=("unused",), topic_prefix=unique)
    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        await open_equipment("camera", settings, edge, station, ("station-1",), "/edge")
        async with open_camera(device, "camera", "station-1", topic_prefix=unique, interval=0.01) as camera:
            await wait_until(lambda: len(camera.tasks) == 2)
            offers = len(station.events)
            await wait_until(lambda: len(station.events) > offers + 2)
    assert {task.type for task in camera.tasks} == station.given == set(RESULTS)
    assert all(task.data == {"job_id": "J1", "action": "inspect", "parameters": {}} for task in camera.tasks)
    assert len({event.event_id for event in station.events}) == len(station.events)
    assert {event.type_id: event.data for event in station.events} == RESULTS
    assert {(event.scope, event.job_id, event.correlation_id) for event in station.events} == {
        ("station-1", None, None)
    }


async def test_camera_repeats_its_request_until_a_gateway_answers(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    """Without a gateway, no answer arrives; the camera ends the request and sends a new one."""
    station = PatientStation()
    settings = MqttEquipmentSettings(type_ids=("unused",), topic_prefix=unique)
    async with (
        open_session(mqtt, f"{unique}-device") as device,
        open_camera(device, "camera", "station-1", topic_prefix=unique, interval=0.01, patience=0.05) as camera,
        open_session(mqtt, f"{unique}-edge") as edge,
    ):
        await open_equipment("camera", settings, edge, station, ("station-1",), "/edge")
        await wait_until(lambda: camera.tasks)
