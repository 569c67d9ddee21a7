"""Asks equipment now, by its own protocol: whether it is there, and how long it takes to say so."""

import time
from dataclasses import dataclass

from edge.config import EquipmentSettings, MqttEquipmentSettings, OpcuaEquipmentSettings, Settings, broker_settings
from edge.errors import Refused, SettingsError, Unavailable
from edge.links.mqtt_connection import connect
from edge.maintenance.broker_check import address, diagnostic_broker, read_retained


@dataclass(frozen=True, slots=True)
class PingResult:
    """What came back, and after how many seconds; `answers` is None where nobody can tell whether it would."""

    answers: bool | None
    said: str
    seconds: float | None = None


async def ping(name: str, section: EquipmentSettings, settings: Settings) -> PingResult:
    """Ask a piece of equipment, beside the gateway that works with it."""
    try:
        match section:
            case MqttEquipmentSettings():
                return await _over_mqtt(name, section, settings)
            case OpcuaEquipmentSettings():
                return await _over_opcua(section)
            case _:
                return PingResult(None, f"equipment of kind {section.kind} can be asked by its gateway alone")
    except (Refused, SettingsError, Unavailable) as error:
        return PingResult(answers=False, said=error.message)


async def _over_mqtt(name: str, section: MqttEquipmentSettings, settings: Settings) -> PingResult:
    """Ask the broker, which answers for the equipment with what it retains of it."""
    mqtt = broker_settings(section, settings.mqtt)
    topic = f"{section.topic_prefix}/{name}/presence"
    async with connect(diagnostic_broker(mqtt)) as connection:
        began = time.perf_counter()
        refusal = await connection.subscribe(topic)
        seconds = time.perf_counter() - began
        said = None if refusal else (await read_retained(connection, {topic})).get(topic)
    at = f"the broker at {address(mqtt)}"
    match said:
        case b"online" | b"offline":
            return PingResult(said == b"online", f"{at} has it {said.decode()}", seconds)
        case _ if refusal:
            return PingResult(None, f"{at} does not let us listen to {topic}: {refusal}", seconds)
        case _:
            return PingResult(None, f"{at} answers; the equipment has not said whether it is there", seconds)


async def _over_opcua(section: OpcuaEquipmentSettings) -> PingResult:
    """Read the server's clock on a session of our own."""
    # asyncua takes half a second to import: who asks others does not pay for it.
    from edge.links.opcua import open_client  # noqa: PLC0415

    async with open_client(section.url, settings=section) as session:
        clock = await session.find("Server", "ServerStatus", "CurrentTime")
        began = time.perf_counter()
        said = await session.read(clock)
        return PingResult(answers=True, said=f"its clock says {said}", seconds=time.perf_counter() - began)
