"""MQTT equipment: what its connections mean for stops, and for messages that the broker had retained."""

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import open_equipment
from edge.links.mqtt import open_session
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation
from tests.local_broker import open_broker

TYPE_ID, COMMAND_ID = "com.example.station.tighten.v1", "J1/R/tighten/1"
EVENT = {"id": "q-1", "source": "/camera", "type": "com.example.station.qa_result.v1", "subject": "station-1"}


async def test_broker_reconnect_counts_as_a_connection_without_presence(unique: str, wait_until: WaitUntil) -> None:
    settings = MqttEquipmentSettings(type_ids=("com.example.station.tighten.v1",), topic_prefix=unique)
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        equipment = await open_equipment("wrench", settings, session, RecordingStation(), ("station-1",), "/edge")
        before = equipment.connection_count
        await broker.stop()
        await wait_until(lambda: not session.connected)
        assert equipment.connection_count == before
        await broker.start()
        await wait_until(lambda: equipment.connection_count == before + 1)
        await session.publish(f"{unique}/wrench/presence", b"online")
        await wait_until(lambda: equipment.connection_count == before + 2)


async def test_a_flood_of_presence_does_not_fill_the_log(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    settings = MqttEquipmentSettings(type_ids=("com.example.station.tighten.v1",), topic_prefix=unique)
    with capture_logs() as logs:
        async with open_session(mqtt, unique) as session:
            equipment = await open_equipment("wrench", settings, session, RecordingStation(), ("station-1",), "/edge")
            before = equipment.connection_count
            for _ in range(50):
                await session.publish(f"{unique}/wrench/presence", b"online")
                await session.publish(f"{unique}/wrench/presence", b"offline")
            await wait_until(lambda: equipment.connection_count == before + 50)
            await wait_until(lambda: equipment.connected is False)
    assert [entry["event"] for entry in logs if entry.get("equipment")] == ["equipment online", "equipment offline"]


@pytest.mark.parametrize("mode", ["binary", "structured"])
async def test_unsolicited_answer_beyond_the_sample_reaches_no_job(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil, mode: str
) -> None:
    settings = MqttEquipmentSettings(type_ids=("tighten.v1",), topic_prefix=unique)
    station = RecordingStation()
    station.unsolicited.add("J0/R/tighten/1")
    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        equipment = await open_equipment("wrench", settings, edge, station, ("station-1",), "/edge")
        for command in ("J0/R/tighten/1", "J1/R/tighten/1"):
            answer = {"specversion": "1.0", "id": command, "source": "/wrench", "type": "tighten.v1"}
            answer["causationid"] = command
            topic = f"{unique}/{equipment.name}/answers"
            if mode == "binary":
                await device.publish(topic, b"1", content_type="application/json", user_properties=answer)
            else:
                envelope = msgspec.json.encode(answer | {"data": 1})
                await device.publish(topic, envelope, content_type="application/cloudevents+json")
        await wait_until(lambda: bool(station.answers))
        assert [equipment_answer.command_id for equipment_answer in station.answers] == ["J1/R/tighten/1"]


async def test_retained_event_and_unsolicited_result_are_refused(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    settings, station = MqttEquipmentSettings(type_ids=(TYPE_ID,), topic_prefix=unique), RecordingStation()
    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        for topic, properties in (("events", EVENT), ("answers", {"id": "r-1", "source": "/wrench", "type": "t"})):
            await device.publish(
                f"{unique}/wrench/{topic}",
                b'{"pass": true}',
                retain=True,
                content_type="application/json",
                user_properties={"specversion": "1.0", **properties},
            )
        await open_equipment("wrench", settings, edge, station, ("station-1",), "/edge")
        await wait_until(lambda: len(station.refused) == 2)
    assert {refused.kind for refused in station.refused} == {"retained"}
    assert station.events == []
    assert station.late_results == []


async def test_retained_answer_to_a_command_counts(mqtt: MqttSettings, unique: str, wait_until: WaitUntil) -> None:
    settings, station = MqttEquipmentSettings(type_ids=(TYPE_ID,), topic_prefix=unique), RecordingStation()
    async with open_session(mqtt, f"{unique}-edge") as edge, open_session(mqtt, f"{unique}-device") as device:
        await device.publish(
            f"{unique}/wrench/answers", b"{}", retain=True, user_properties={"causationid": COMMAND_ID}
        )
        await open_equipment("wrench", settings, edge, station, ("station-1",), "/edge")
        await wait_until(lambda: station.answers)
    assert [answer.command_id for answer in station.answers] == [COMMAND_ID]
    assert station.refused == []
