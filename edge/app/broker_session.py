"""Opens the session with a broker for one adapter of the gateway."""

import contextlib

from edge.app.parts import GatewayParts
from edge.config import MqttSettings
from edge.links.mqtt import MqttSession, keep_session
from edge.links.mqtt_broker import RECEIVE_MAXIMUM
from edge.links.receive_queue import FLOOD_LIMITS, FloodLimits

_CONNECT_WITHIN_S = 2.0
"""How long a start waits for the first attempt to reach a broker; without it the gateway starts degraded."""


async def open_session(
    stack: contextlib.AsyncExitStack,
    core: GatewayParts,
    name: str,
    mqtt: MqttSettings,
    largest_packet: int,
    receive_maximum: int = RECEIVE_MAXIMUM,
    flood: FloodLimits = FLOOD_LIMITS,
) -> MqttSession:
    """Open the MQTT session of one adapter; each has its own client id, as a broker allows one session per id."""
    base = core.settings.mqtt.client_id or core.settings.gateway.name
    client_id = f"{base}-{name}" if name else base
    session = await stack.enter_async_context(
        keep_session(mqtt, client_id, largest_packet=largest_packet, receive_maximum=receive_maximum, flood=flood)
    )
    await session.wait_attempted(_CONNECT_WITHIN_S)
    return session
