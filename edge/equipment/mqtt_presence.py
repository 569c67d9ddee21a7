"""The connection of equipment over MQTT: its broker first, then the presence that it has published."""

from edge.links.connection_fault import fault_of
from edge.links.mqtt import MqttSession
from edge.links.mqtt_connection import RETRY_SECONDS
from edge.model.equipment_connection import ConnectionFault, ConnectionState
from edge.station.equipment import NotSent


def presence_state(session: MqttSession, since: int | None, *, present: bool | None) -> ConnectionState:
    """Return the connection; `present` is the last presence of the equipment, None before the first."""
    if not session.connected:
        return _without_broker(session, since)
    if present is False:
        reason = "published by itself, or by its broker after a lost connection"
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
        reason=failure.message,
        retry_s=RETRY_SECONDS[1],
    )


def require_broker(session: MqttSession, name: str) -> None:
    """Raise NotSent without a connection to the broker: neither mark nor memory may say that a command left."""
    if not session.connected:
        raise NotSent(f"{name}: {session.failure.message if session.failure else 'its broker is not connected'}")
