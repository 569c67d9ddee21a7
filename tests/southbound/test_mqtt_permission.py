"""The retained work permission of an MQTT tool, on a real broker."""

from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.links.mqtt import Message, MqttSession, open_session
from edge.southbound.mqtt import open_equipment
from tests.conftest import WaitUntil
from tests.southbound.recording_station import RecordingStation
from tests.southbound.test_mqtt_equipment import COMMAND


class Tool:
    """A tool that notes its permission and the commands, in order."""

    def __init__(self, session: MqttSession, topic: str) -> None:
        self.noted: list[bytes] = []
        self._session = session
        self._topic = topic

    async def note(self, message: Message) -> None:
        self.noted.append(b"start" if message.topic.endswith("/commands") else message.payload)

    async def answer(self) -> None:
        attributes = {"id": "a-1", "source": "/wrench", "type": COMMAND.type_id, "causationid": COMMAND.command_id}
        topic = f"{self._topic}/answers"
        await self._session.send(Message(topic, user_properties=attributes | {"specversion": "1.0"}))


async def test_the_tool_is_enabled_from_the_start_to_the_answer(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    settings = MqttEquipmentSettings(type_ids=(COMMAND.type_id,), topic_prefix=unique, lock="on")
    station = RecordingStation()
    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        tool = Tool(device, f"{unique}/wrench")
        await device.subscribe(f"{unique}/wrench/commands", tool.note)
        await device.follow(f"{unique}/wrench/enabled", tool.note)
        equipment = await open_equipment("wrench", settings, edge, station, ("station-1",), "/edge")
        station.unanswered = [COMMAND]
        await equipment.send(COMMAND)
        await wait_until(lambda: tool.noted == [b"true", b"start"])
        station.unanswered = [replace(COMMAND, command_id="J1/R/other/1")]
        await tool.answer()
        await wait_until(lambda: tool.noted[2:] == [b"true"])
        station.unanswered = []
        await equipment.stop(COMMAND)
        await wait_until(lambda: tool.noted[-1] == b"false")
    # The permission outlives the gateway: a tool that starts now has it too.
    async with open_session(mqtt, f"{unique}-late") as late:
        found = await late.read_retained(f"{unique}/wrench/enabled", 60)
        assert found is not None
        assert found.payload == b"false"
