"""An edge node over a real store and broker, with times that suit tests."""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from edge.config import MqttSettings
from edge.features.sparkplug.node import EdgeNode, NodeIdentity
from edge.features.sparkplug.session import NodeLimits
from edge.features.sparkplug.table import NodeTopics
from edge.foundation.task_group import background_task
from edge.links.mqtt_broker import broker_of
from edge.ports.tag import TagDefinition, TagDefinitions
from edge.store.client import Store

FAST = NodeLimits(look_s=0.02, birth_s=0.02, rebirth_s=0.2, retype_s=0.2, confirm_s=0.05, host_s=0.2)


@dataclass
class Plant:
    """An edge node and what a test changes around it; its group is a word of the test."""

    group: str
    gone: set[str] = field(default_factory=set)
    definitions: TagDefinitions = field(default_factory=TagDefinitions)

    def node(self, store: Store, *ports: int, host: str = "", limits: NodeLimits = FAST) -> EdgeNode:
        """Return the edge node `station` at the brokers on these ports."""
        identity = NodeIdentity(NodeTopics(self.group, "station"), host, ("*",))
        urls = [f"mqtt://127.0.0.1:{port}" for port in ports]
        brokers = [broker_of(MqttSettings(url=url), identity.client_id, 0) for url in urls]
        return EdgeNode(
            {"samples": store}, brokers, identity, self.definitions, lambda: frozenset(self.gone), now_ms, limits
        )

    def define(self, *definitions: TagDefinition) -> None:
        """Change the definitions of tags."""
        self.definitions.use_stored(definitions)

    @asynccontextmanager
    async def running(self, store: Store, *ports: int, host: str = "") -> AsyncIterator[EdgeNode]:
        """Run the edge node for the length of the block."""
        node = self.node(store, *ports, host=host)
        async with background_task(node.run(), "edge node"):
            yield node


def now_ms() -> int:
    """Return the time in milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
