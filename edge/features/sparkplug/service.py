"""Opens the sources that read Sparkplug B, and the edge node, which one instance on a store runs."""

import contextlib
import functools

import msgspec

from edge.app.feature import Opened
from edge.app.feature_ports import Telemetry
from edge.app.parts import GatewayParts, Works
from edge.config import broker_settings
from edge.features.sparkplug.node import EdgeNode, NodeIdentity
from edge.features.sparkplug.settings import SparkplugSettings
from edge.features.sparkplug.source import LARGEST_PACKET, SparkplugSource
from edge.features.sparkplug.table import NodeTopics, as_id
from edge.foundation.instant import now_ms
from edge.foundation.text import Text
from edge.links.mqtt_broker import broker_of
from edge.store.client import Store

_DURABLE = "samples"
_VOLATILE = "volatile"


async def publish_tags(_stack: contextlib.AsyncExitStack, core: GatewayParts, _works: Works) -> None:
    """Take the tags that the edge node publishes before the sources open: a broker delivers at once what it kept."""
    telemetry: Telemetry = core.ports["telemetry"]
    settings = core.settings.section(SparkplugSettings)
    if settings.group:
        telemetry.interest.publish(settings.tags)


async def open_sparkplug(stack: contextlib.AsyncExitStack, core: GatewayParts, _works: Works) -> Opened | None:
    """Open the sources whose payload is Sparkplug, and the edge node where the settings name a group."""
    telemetry: Telemetry = core.ports["telemetry"]
    for source in telemetry.mqtt_sources:
        if source.payload == "sparkplug":
            session = await source.open_session(stack, LARGEST_PACKET)
            reader = SparkplugSource(source, telemetry.queue, now_ms)
            await core.keep_running(stack, f"source {source.name}", functools.partial(reader.run, session))
            await reader.open(session)
    return await _open_edge_node(stack, core, telemetry) if core.settings.section(SparkplugSettings).group else None


async def _open_edge_node(stack: contextlib.AsyncExitStack, core: GatewayParts, telemetry: Telemetry) -> Opened:
    """Run the edge node while this instance publishes the changes of the first scope."""
    settings = core.settings.section(SparkplugSettings)
    topics = NodeTopics(settings.group, settings.edge_node or core.scopes[0])
    identity = NodeIdentity(topics, settings.primary_host, settings.tags)
    first = broker_settings(settings, core.settings.mqtt)
    all_brokers = (first, *(msgspec.structs.replace(first, url=url) for url in settings.further_urls))
    brokers = [broker_of(broker, identity.client_id, 0) for broker in all_brokers]
    stores: dict[str, Store] = {_DURABLE: core.store}
    if telemetry.volatile is not None:
        stores[_VOLATILE] = telemetry.volatile

    def gone() -> frozenset[str]:
        watched = (watched_equipment.equipment for watched_equipment in core.watch.watched)
        return frozenset(as_id(equipment_port.name) for equipment_port in watched if equipment_port.connected is False)

    node = EdgeNode(stores, brokers, identity, telemetry.tags, gone, now_ms)
    core.health.problems.append(lambda: [] if node.waits_for_host else _line(node))
    core.health.notes.append(lambda: _line(node) if node.waits_for_host else [])
    gate = core.instance.publisher_gates[core.scopes[0]]
    await core.keep_running_while(stack, gate, "sparkplug", node.run)

    return Opened(serving=(lambda: f"Sparkplug group {settings.group}",), metrics=(node.stats.metrics,))


def _line(node: EdgeNode) -> list[Text]:
    return [Text.of("Sparkplug: {problem}", problem=node.problem)] if node.problem else []
