"""Opens the sources of samples, each with the code of its kind only."""

import contextlib
import pkgutil
from collections.abc import Awaitable, Callable

from edge.app.parts import GatewayParts
from edge.config import MqttSettings
from edge.equipment.device_carriers import DeviceCarriers
from edge.features.telemetry.settings import MqttSourceSettings, RedisSourceSettings, SourceSettings
from edge.features.telemetry.sources.mqtt import IN_FLIGHT, LARGEST_PACKET, SampleSource
from edge.features.telemetry.sources.redis import RedisSource
from edge.features.telemetry.sources.sample_sink import SampleSink
from edge.foundation.instant import now_ms
from edge.links.mqtt import MqttSession
from edge.links.receive_queue import FloodLimits
from edge.store.other_redis import open_foreign

SessionOpener = Callable[[str, MqttSettings, int, int, FloodLimits], Awaitable[MqttSession]]
"""Opens an MQTT session by its name, the broker, the largest packet, and the messages that may be unacknowledged, and
those of QoS 0 that may wait."""
_WAITING = 10_000
"""Messages of QoS 0 that wait while the event loop is busy; the queue of telemetry decides what to drop."""


async def open_sources(
    stack: contextlib.AsyncExitStack, core: GatewayParts, sink: SampleSink, open_session: SessionOpener
) -> None:
    """Open every source of the settings; all of them know which carrier a device is bound to."""
    carriers = DeviceCarriers()
    for name, section in core.settings.named(SourceSettings).items():
        if isinstance(section, MqttSourceSettings):
            if section.payload == "sparkplug":
                continue  # the feature sparkplug reads it
            session = await open_session(
                f"source-{name}", broker_of(core, section), LARGEST_PACKET, IN_FLIGHT, flood_of(sink)
            )
            core.health.sessions[f"source {name}"] = session
            await SampleSource(name, section, sink, now_ms, carriers).open(session)
        else:
            await _open_polled(stack, core, name, section, sink, carriers)


def flood_of(sink: SampleSink) -> FloodLimits:
    """Return how many messages of a source may wait."""
    return FloodLimits(_WAITING, _WAITING, _WAITING, sink.note_drop)


def broker_of(core: GatewayParts, section: MqttSourceSettings) -> MqttSettings:
    """Return the broker of a source: its own, or that of the MES."""
    return MqttSettings(url=section.url) if section.url else core.settings.mqtt


async def _open_polled(
    stack: contextlib.AsyncExitStack,
    core: GatewayParts,
    name: str,
    section: SourceSettings,
    sink: SampleSink,
    carriers: DeviceCarriers,
) -> None:
    if isinstance(section, RedisSourceSettings):
        foreign = await stack.enter_async_context(open_foreign(section.url))
        run = RedisSource(name, section, foreign, sink, now_ms, carriers=carriers).run
    else:
        # asyncua is imported only where it is used.
        opener = pkgutil.resolve_name("edge.features.telemetry.sources.opcua:OpcuaSource")
        run = opener(name, section, sink, now_ms).run
    await core.keep_running(stack, f"source {name}", run)
