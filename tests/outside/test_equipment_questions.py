"""The reply to an equipment request is sent to its sender only."""

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import MqttClient
from tests.outside.servers import PREFIX


def test_reply_to_an_equipment_request_never_reaches_other_equipment(plant: Plant) -> None:
    """A camera asks for work and names the command topic of the wrench as its response topic."""
    camera = MqttClient(plant.broker.port, "camera")
    camera.connect()
    question = {
        "specversion": "1.0",
        "id": "q1",
        "source": "/camera",
        "type": "com.example.work.v1",
        "subject": "station-1",
    }
    camera.publish(
        f"{PREFIX}/equipment/wrench/events", "{}", question, response_topic=f"{PREFIX}/equipment/wrench/commands"
    )
    camera.close()
    _require_silence_to_the_wrench(plant)


def _require_silence_to_the_wrench(plant: Plant) -> None:
    assert plant.mes.start_job("J1").status == 1
    plant.mes.wait_for_state("J1", "Ended")
    assert [command.attributes.get("phase") for command in plant.wrench.commands] == ["start"]
