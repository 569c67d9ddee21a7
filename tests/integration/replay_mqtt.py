"""Replays the messages of equipment over MQTT from a recording."""

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import msgspec
from msgspec.structs import replace

from edge.config import MqttEquipmentSettings, MqttSettings, Settings
from edge.equipment.mqtt import MqttEquipment, open_equipment
from edge.features.admin.recording import Line, MessageRecord, RecordingHeader, recording
from edge.links.mqtt import MqttSession, open_session
from edge.sfc.signal import Phase
from edge.station.equipment import Command, Task
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation

SENT_BY_EQUIPMENT = {"answers", "events", "data", "presence"}


def by_topic(lines: Sequence[MessageRecord]) -> dict[str, list[MessageRecord]]:
    """Return the messages on each topic in order: between topics the order is that of the broker.

    A broker marks a message as retained only for a later subscriber: a recording may have the mark, a replay has not.
    """
    topics: dict[str, list[MessageRecord]] = defaultdict(list)
    for line in lines:
        topics[line.topic].append(msgspec.structs.replace(line, after=0.0, retain=False))
    return topics


class Replay:
    """The station, in whose place commands are sent, and the equipment, in whose place the rest is said."""

    def __init__(self, equipment: MqttEquipment, station: RecordingStation, device: MqttSession, topic: str) -> None:
        self.station = station
        self._equipment = equipment
        self._device = device
        self._topic = topic
        self._sent: set[tuple[str, str]] = set()

    async def play(self, line: MessageRecord, tasks: Sequence[MessageRecord]) -> None:
        """Publish a line again, unless the kind publishes it by itself."""
        match line.topic:
            case "commands":
                await self._command(line)
            case "events" | "data":
                taken = (task for task in tasks if task.properties["causationid"] == line.properties["id"])
                self.station.task = next(
                    (Task(**message_record.payload) for message_record in taken if message_record.payload), None
                )
                await self._publish(line)
            case "answers" | "presence":
                answered = line.properties.get("causationid")
                self.station.unanswered = [
                    command for command in self.station.unanswered if command.command_id != answered
                ]
                await self._publish(line)
            case _:
                return

    def has_taken(self, line: MessageRecord, taken: int) -> bool:
        """Return whether the station received one item more than before, or knows that the equipment is connected."""
        if line.topic == "presence":
            return self._equipment.present is (line.payload == "online")
        return line.topic not in SENT_BY_EQUIPMENT or self.got() > taken

    def got(self) -> int:
        """Count what the station got."""
        return len(self.station.answers) + len(self.station.events) + len(self.station.refused)

    async def _command(self, line: MessageRecord) -> None:
        reported, data = line.properties, line.payload
        if (reported["id"], reported["phase"]) in self._sent:
            return
        self._sent.add((reported["id"], reported["phase"]))
        phase = Phase(reported["phase"])
        command = Command(
            command_id=reported["id"],
            phase=phase,
            type_id=reported["type"],
            scope=reported["subject"],
            correlation_id=reported["correlationid"],
            **data,
        )
        if phase is Phase.STOP:
            await self._equipment.stop(command)
        else:
            self.station.unanswered.append(command)
            await self._equipment.send(command)

    async def _publish(self, line: MessageRecord) -> None:
        is_json = line.content_type is not None
        nothing = b"" if line.payload is None else msgspec.json.encode(line.payload)
        await self._device.publish(
            f"{self._topic}/{line.topic}",
            nothing if is_json else str(line.payload).encode(),
            content_type=line.content_type,
            user_properties=line.properties,
            response_topic=line.response_topic and f"{self._topic}/{line.response_topic}",
            correlation_data=bytes.fromhex(line.correlation_data) if line.correlation_data else None,
            retain=line.retain,
        )


async def play(
    beginning: RecordingHeader,
    lines: Sequence[MessageRecord],
    mqtt: MqttSettings,
    unique: str,
    again: Path,
    wait_until: WaitUntil,
) -> RecordingStation:
    """Replay a recording while it is recorded `again`; return what the station received."""
    section = MqttEquipmentSettings(type_ids=tuple(beginning.settings["type_ids"]), topic_prefix=unique)
    settings = Settings(mqtt=mqtt, southbound={beginning.equipment: section})
    scopes = {line.properties["subject"] for line in lines if "subject" in line.properties}
    sent_by_us = [line for line in lines if line.topic not in SENT_BY_EQUIPMENT]
    source = next((line.properties["source"] for line in sent_by_us), "/edge")
    station = RecordingStation()
    heard: list[Line] = []
    async with (
        open_session(mqtt, f"{unique}-edge") as edge,
        open_session(mqtt, f"{unique}-device") as device,
        recording(beginning.equipment, settings, set(), again, heard.append),
    ):
        equipment = await open_equipment(beginning.equipment, section, edge, station, scopes, source)
        assert isinstance(equipment, MqttEquipment)
        replay = Replay(equipment, station, device, f"{unique}/{beginning.equipment}")
        for line in lines:
            taken = replay.got()
            await replay.play(
                line, [message_record for message_record in sent_by_us if message_record.topic != "commands"]
            )
            await wait_until(lambda line=line, taken=taken: replay.has_taken(line, taken))
        await wait_until(lambda: len(heard) >= len(lines))
    # The topics of what it refused begin with a word of this test.
    station.refused = [
        replace(refused, way=refused.way.removeprefix(f"{unique}/"), reason=str(refused.reason))
        for refused in station.refused
    ]
    return station
