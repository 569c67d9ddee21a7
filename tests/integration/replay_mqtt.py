"""Says again what equipment that speaks MQTT once said, as a recording has it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import msgspec

from edge.config import MqttEquipmentSettings, MqttSettings, Settings
from edge.links.mqtt import MqttSession, open_session
from edge.maintenance.recording import Line, MessageRecord, RecordingHeader, recording
from edge.sfc.signal import Phase
from edge.southbound.mqtt import MqttEquipment, open_equipment
from edge.station.equipment import Command, Task
from tests.conftest import WaitUntil
from tests.southbound.contract import RecordingStation

SAID_BY_EQUIPMENT = {"answers", "events", "data", "presence"}


def by_topic(lines: Sequence[MessageRecord]) -> dict[str, list[MessageRecord]]:
    """Give what was said on each topic in order: between topics the order is the broker's.

    Whether the broker had kept a message it tells only to who subscribes later: a recording may have, we do not.
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
        """Say a line again, unless the kind says it by itself."""
        match line.topic:
            case "commands":
                await self._command(line)
            case "events" | "data":
                taken = (each for each in tasks if each.properties["causationid"] == line.properties["id"])
                self.station.task = next((Task(**each.payload) for each in taken if each.payload), None)
                await self._say(line)
            case "answers" | "presence":
                answered = line.properties.get("causationid")
                self.station.unanswered = [each for each in self.station.unanswered if each.command_id != answered]
                await self._say(line)
            case _:
                return

    def has_taken(self, line: MessageRecord, taken: int) -> bool:
        """Tell whether the station has got one thing more than it had taken, or knows that the equipment is there."""
        if line.topic == "presence":
            return self._equipment.present is (line.payload == "online")
        return line.topic not in SAID_BY_EQUIPMENT or self.got() > taken

    def got(self) -> int:
        """Count what the station got."""
        return len(self.station.answers) + len(self.station.events) + len(self.station.refused)

    async def _command(self, line: MessageRecord) -> None:
        told, data = line.properties, line.payload
        if (told["id"], told["phase"]) in self._sent:
            return
        self._sent.add((told["id"], told["phase"]))
        phase = Phase(told["phase"])
        command = Command(
            command_id=told["id"],
            phase=phase,
            type_id=told["type"],
            scope=told["subject"],
            correlation_id=told["correlationid"],
            **data,
        )
        if phase is Phase.STOP:
            await self._equipment.stop(command)
        else:
            self.station.unanswered.append(command)
            await self._equipment.send(command)

    async def _say(self, line: MessageRecord) -> None:
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
    """Play a recording while it is recorded `again`; give what the station got."""
    section = MqttEquipmentSettings(type_ids=tuple(beginning.settings["type_ids"]), topic_prefix=unique)
    settings = Settings(mqtt=mqtt, southbound={beginning.equipment: section})
    scopes = {line.properties["subject"] for line in lines if "subject" in line.properties}
    said_by_us = [line for line in lines if line.topic not in SAID_BY_EQUIPMENT]
    source = next((line.properties["source"] for line in said_by_us), "/edge")
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
            await replay.play(line, [each for each in said_by_us if each.topic != "commands"])
            await wait_until(lambda line=line, taken=taken: replay.has_taken(line, taken))
        await wait_until(lambda: len(heard) >= len(lines))
    # The topics of what it refused begin with a word of this test.
    station.refused = [replace(each, way=each.way.removeprefix(f"{unique}/")) for each in station.refused]
    return station
