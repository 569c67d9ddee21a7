"""The connection of equipment over MQTT is that of its broker, then its own presence."""

from edge.config import MqttEquipmentSettings, MqttSettings
from edge.equipment.mqtt import open_equipment
from edge.links.mqtt import open_session
from edge.links.mqtt_connection import RETRY_SECONDS
from edge.model.equipment_connection import ConnectionState
from tests.conftest import WaitUntil
from tests.equipment.recording_station import RecordingStation
from tests.local_broker import open_broker


async def test_reason_why_equipment_is_away_is_its_broker_or_its_presence(unique: str, wait_until: WaitUntil) -> None:
    settings = MqttEquipmentSettings(type_ids=("com.example.station.tighten.v1",), topic_prefix=unique)
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        equipment = await open_equipment("wrench", settings, session, RecordingStation(), ("station-1",), "/edge")
        assert equipment.connection == ConnectionState()
        await session.publish(f"{unique}/wrench/presence", b"offline")
        await wait_until(lambda: equipment.connection.connected is False)
        assert str(equipment.connection.text).startswith("not connected: offline: ")
        await broker.stop()
        await wait_until(lambda: str(equipment.connection.text).startswith("not connected: refused: "))
        assert f"cannot connect to the MQTT broker at {broker.url.removeprefix('mqtt://')}" in str(
            equipment.connection.reason
        )
        assert equipment.connection.retry_s == RETRY_SECONDS[1]
