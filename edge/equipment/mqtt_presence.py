"""The connection of equipment over MQTT: its broker first, then the presence that it has published."""

import time

from edge.config import MqttEquipmentSettings, Settings, broker_settings
from edge.equipment.ping import PingResult
from edge.foundation.text import Text
from edge.links.connection_fault import fault_of
from edge.links.mqtt import MqttSession
from edge.links.mqtt_broker import address_of, diagnostic_broker
from edge.links.mqtt_connection import RETRY_SECONDS, connect
from edge.links.topic_probe import read_retained
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.station.equipment import NotSent


def presence_state(session: MqttSession, since: int | None, *, present: bool | None) -> ConnectionState:
    """Return the connection; `present` is the last presence of the equipment, None before the first."""
    if not session.connected:
        return _without_broker(session, since)
    if present is False:
        reason = Text.of("published by itself, or by its broker after a lost connection")
        return ConnectionState(connected=False, since=since, fault=ConnectionFault.OFFLINE, reason=reason)
    return ConnectionState(connected=present, since=None if present is None else since)


def _without_broker(session: MqttSession, since: int | None) -> ConnectionState:
    failure = session.failure
    if failure is None:
        return ConnectionState(connected=False, since=since, fault=ConnectionFault.BROKER)
    fault = fault_of(failure)
    return ConnectionState(
        connected=False,
        since=since,
        fault=ConnectionFault.BROKER if fault is ConnectionFault.OTHER else fault,
        reason=failure.text,
        retry_s=RETRY_SECONDS[1],
    )


def require_broker(session: MqttSession, name: str) -> None:
    """Raise NotSent without a connection to the broker: neither mark nor memory may say that a command left."""
    if not session.connected:
        raise NotSent(
            Text.of(
                "{name}: {failure}",
                name=name,
                failure=session.failure or Text.of("its broker is not connected"),
            )
        )


async def ping(name: str, section: MqttEquipmentSettings, settings: Settings) -> PingResult:
    """Read the retained presence of the equipment from its broker."""
    mqtt = broker_settings(section, settings.mqtt)
    topic = f"{section.topic_prefix}/{name}/presence"
    async with connect(diagnostic_broker(mqtt)) as connection:
        began = time.perf_counter()
        refusal = await connection.subscribe(topic)
        seconds = time.perf_counter() - began
        presence = None if refusal else (await read_retained(connection, {topic})).get(topic)
    at = f"the broker at {address_of(mqtt)}"
    match presence:
        case b"online" | b"offline":
            return PingResult(presence == b"online", f"{presence.decode()} at {at}", seconds)
        case _ if refusal:
            return PingResult(None, f"{at} refuses the subscription to {topic}: {refusal}", seconds)
        case _:
            return PingResult(None, f"{at} answers; presence of the equipment unknown", seconds)
