"""The retained work permission of an MQTT tool, on a real broker."""

import asyncio
from collections.abc import Sequence
from typing import cast

from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import ToolPermission, open_equipment
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.links.mqtt import Message, MqttSession, open_session
from edge.model.equipment_health import OpenSafing
from edge.station.equipment import Command
from tests.conftest import WaitUntil
from tests.english import english
from tests.equipment.recording_station import RecordingStation
from tests.equipment.test_mqtt_equipment import COMMAND
from tests.virtual_time import run_virtual


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
        message = await late.read_retained(f"{unique}/wrench/enabled", 60)
        assert message is not None
        assert message.payload == b"false"


def test_permission_that_cannot_be_withdrawn_is_retried_in_seconds() -> None:
    """The store or the broker is away at the end of a command: the tool must not stay enabled until the next one."""

    class Broker:
        """A session that records what it takes, with its time, and fails a few times."""

        def __init__(self) -> None:
            self.failures = 3
            self.taken: list[tuple[float, bytes]] = []

        async def send(self, message: Message) -> bool:
            if self.failures:
                self.failures -= 1
                raise Unavailable("the broker does not confirm")
            self.taken.append((asyncio.get_running_loop().time(), message.payload))
            return True

    async def nothing() -> Sequence[Command]:
        return ()

    async def withdrawn() -> tuple[OpenSafing | None, OpenSafing | None, Broker]:
        broker = Broker()
        permission = ToolPermission(cast("MqttSession", broker), "wrench", nothing, lambda: 5)
        async with background_task(permission.keep_updating(), "permission"):
            await permission.update()
            first = permission.open_release
            await asyncio.sleep(60)
        return first, permission.open_release, broker

    first, last, broker = run_virtual(withdrawn())
    assert english(first) == OpenSafing(what="release", since=5, tries=1, reason="the broker does not confirm")
    assert (last, broker.taken) == (None, [(17.0, b"false")])
