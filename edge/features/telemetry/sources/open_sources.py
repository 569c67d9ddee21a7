"""Opens the sources of samples, each with the code of its kind only."""

import contextlib
import pkgutil
from functools import partial

from edge.app.feature_ports import MqttSource, SampleSink
from edge.app.parts import GatewayParts, open_session
from edge.config import MqttSettings
from edge.features.telemetry.settings import MqttSourceSettings, RedisSourceSettings, SourceSettings
from edge.features.telemetry.sources.device_carriers import DeviceCarriers
from edge.features.telemetry.sources.mqtt import IN_FLIGHT, LARGEST_PACKET, SampleSource
from edge.foundation.instant import now_ms
from edge.links.mqtt import MqttSession
from edge.links.receive_queue import FloodLimits

_WAITING = 10_000
"""Messages of QoS 0 that wait while the event loop is busy; the queue of telemetry decides what to drop."""


async def open_sources(stack: contextlib.AsyncExitStack, core: GatewayParts, sink: SampleSink) -> None:
    """Open every source of the settings; all of them know which carrier a device is bound to."""
    carriers = DeviceCarriers()
    for name, section in core.settings.named(SourceSettings).items():
        if not isinstance(section, MqttSourceSettings):
            await _open_polled(stack, core, name, section, sink, carriers)
        elif section.payload == "value":
            session = await _open_session(core, name, section, sink, stack, LARGEST_PACKET)
            await SampleSource(name, section, sink, now_ms, carriers).open(session)


def mqtt_sources_of_others(core: GatewayParts, sink: SampleSink) -> list[MqttSource]:
    """Return the sources whose messages another feature reads."""
    return [
        MqttSource(name, section.payload, section.topic, section.tag, partial(_open_session, core, name, section, sink))
        for name, section in core.settings.named(MqttSourceSettings).items()
        if section.payload != "value"
    ]


async def _open_session(
    core: GatewayParts,
    name: str,
    section: MqttSourceSettings,
    sink: SampleSink,
    stack: contextlib.AsyncExitStack,
    largest_packet: int,
) -> MqttSession:
    """Open the session of a source with its own broker, or with that of the MES."""
    broker = MqttSettings(url=section.url) if section.url else core.settings.mqtt
    flood = FloodLimits(_WAITING, _WAITING, _WAITING, sink.note_drop)
    session = await open_session(stack, core, f"source-{name}", broker, largest_packet, IN_FLIGHT, flood)
    core.health.sessions[f"source {name}"] = session
    return session


async def _open_polled(
    stack: contextlib.AsyncExitStack,
    core: GatewayParts,
    name: str,
    section: SourceSettings,
    sink: SampleSink,
    carriers: DeviceCarriers,
) -> None:
    # redis-py and asyncua are imported only where they are used.
    if isinstance(section, RedisSourceSettings):
        opener = pkgutil.resolve_name("edge.features.telemetry.sources.redis:open_redis_source")
        source = await stack.enter_async_context(opener(name, section, sink, carriers))
    else:
        source = pkgutil.resolve_name("edge.features.telemetry.sources.opcua:OpcuaSource")(name, section, sink, now_ms)
    await core.keep_running(stack, f"source {name}", source.run)
