"""Pings equipment over its own protocol and measures the response time."""

import time
from collections.abc import Sequence

from msgspec import Struct

from edge.config import EquipmentSettings, MqttEquipmentSettings, OpcuaEquipmentSettings, Settings, broker_settings
from edge.features.admin.broker_check import address, diagnostic_broker, read_retained
from edge.features.openprotocol.protocol.session import open_openprotocol
from edge.features.openprotocol.settings import OpenProtocolSettings, address_of
from edge.foundation.errors import Refused, SettingsError, Unavailable
from edge.links.connection_fault import fault_of
from edge.links.mqtt_connection import connect
from edge.model.equipment_connection import ConnectionFault

_OF_ONE_CLIENT = frozenset(
    {ConnectionFault.DECLINED, ConnectionFault.REFUSED, ConnectionFault.CLOSED, ConnectionFault.SILENT}
)
"""How equipment that allows a single client receives a second one: it depends on the make."""


class PingResult(Struct, frozen=True):
    """The response and its time in seconds; `answers` is None when that is unknown, `fault` why there is none."""

    answers: bool | None
    detail: str
    seconds: float | None = None
    fault: ConnectionFault | None = None


def with_clients(result: PingResult, clients: Sequence[str]) -> PingResult:
    """Return a result as it is where gateways are connected to the equipment: it may allow a single client."""
    if not clients or result.answers is not False or result.fault not in _OF_ONE_CLIENT:
        return result
    detail = f"works: {', '.join(clients)} is its client, and it takes no second one ({result.detail})"
    return PingResult(answers=True, detail=detail)


async def ping(name: str, section: EquipmentSettings, settings: Settings) -> PingResult:
    """Ping equipment on a connection of its own."""
    try:
        match section:
            case MqttEquipmentSettings():
                return await _over_mqtt(name, section, settings)
            case OpcuaEquipmentSettings():
                return await _over_opcua(section)
            case OpenProtocolSettings():
                return await _over_openprotocol(section)
            case _:
                return PingResult(None, f"equipment of kind {section.kind} can be reached by its gateway only")
    except (Refused, SettingsError, Unavailable) as error:
        return PingResult(answers=False, detail=error.message, fault=fault_of(error))


async def _over_mqtt(name: str, section: MqttEquipmentSettings, settings: Settings) -> PingResult:
    """Read the retained presence of the equipment from its broker."""
    mqtt = broker_settings(section, settings.mqtt)
    topic = f"{section.topic_prefix}/{name}/presence"
    async with connect(diagnostic_broker(mqtt)) as connection:
        began = time.perf_counter()
        refusal = await connection.subscribe(topic)
        seconds = time.perf_counter() - began
        presence = None if refusal else (await read_retained(connection, {topic})).get(topic)
    at = f"the broker at {address(mqtt)}"
    match presence:
        case b"online" | b"offline":
            return PingResult(presence == b"online", f"{presence.decode()} at {at}", seconds)
        case _ if refusal:
            return PingResult(None, f"{at} refuses the subscription to {topic}: {refusal}", seconds)
        case _:
            return PingResult(None, f"{at} answers; presence of the equipment unknown", seconds)


async def _over_openprotocol(section: OpenProtocolSettings) -> PingResult:
    """Start the communication on a session of its own, and stop it."""
    began = time.perf_counter()
    async with open_openprotocol(*address_of(section), link_layer=False) as session:
        seconds = time.perf_counter() - began
        return PingResult(answers=True, detail=f"{session.controller['name']!r} has started", seconds=seconds)


async def _over_opcua(section: OpcuaEquipmentSettings) -> PingResult:
    """Read the clock of the server on a session of its own."""
    # asyncua takes half a second to import: only where it is used.
    from edge.links.opcua import open_client  # noqa: PLC0415

    async with open_client(section.url, settings=section) as session:
        clock = await session.find("Server", "ServerStatus", "CurrentTime")
        began = time.perf_counter()
        time_read = await session.read(clock)
        return PingResult(answers=True, detail=f"its clock reads {time_read}", seconds=time.perf_counter() - began)
