"""Opens the edge node of Sparkplug B; one instance on a store runs it."""

import contextlib

import msgspec

from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.config import broker_settings
from edge.features.sparkplug.node import EdgeNode, NodeIdentity
from edge.features.sparkplug.topics import NodeTopics, as_id
from edge.features.telemetry.service import TelemetryService
from edge.foundation.instant import now_ms
from edge.links.mqtt_broker import broker_of
from edge.store.client import Store

_DURABLE = "samples"
_VOLATILE = "volatile"


async def open_sparkplug(stack: contextlib.AsyncExitStack, core: GatewayParts, _works: Works) -> Opened:
    """Run the edge node while this instance publishes the changes of the first scope."""
    telemetry: TelemetryService = core.ports["telemetry"]
    settings = core.settings.sparkplug
    topics = NodeTopics(settings.group, settings.edge_node or core.scopes[0])
    identity = NodeIdentity(topics, settings.primary_host, settings.tags)
    first = broker_settings(settings, core.settings.mqtt)
    all_brokers = (first, *(msgspec.structs.replace(first, url=each) for each in settings.further_urls))
    brokers = [broker_of(each, identity.client_id, 0) for each in all_brokers]
    stores: dict[str, Store] = {_DURABLE: core.store}
    if telemetry.volatile is not None:
        stores[_VOLATILE] = telemetry.volatile

    def gone() -> frozenset[str]:
        watched = (each.equipment for each in core.watch.watched)
        return frozenset(as_id(each.name) for each in watched if each.connected is False)

    node = EdgeNode(stores, brokers, identity, telemetry.tags, gone, now_ms)
    telemetry.edge_node = node.stats
    core.health.problems.append(lambda: [] if node.waits_for_host else _line(node))
    core.health.notes.append(lambda: _line(node) if node.waits_for_host else [])
    gate = core.instance.publisher_gates[core.scopes[0]]
    await core.keep_running_while(stack, gate, "sparkplug", node.run)
    return Opened(serving=(lambda: f"Sparkplug group {settings.group}",))


def _line(node: EdgeNode) -> list[str]:
    return [f"Sparkplug: {node.problem}"] if node.problem else []
