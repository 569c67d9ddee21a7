"""Received MQTT messages until the session takes them: the broker bounds those of QoS 1, this queue those of QoS 0."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable
from typing import Final

import structlog
from msgspec import Struct

from edge.foundation.rate_limit import LogThrottle
from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_publish import PublishHead

_QOS0_BYTES = 4 * 1024 * 1024

logger = structlog.get_logger(__name__)


def _log_only() -> None:
    """Ignore a dropped message, which is logged."""


class FloodLimits(Struct, frozen=True):
    """Messages of QoS 0 that wait: `per_topic` of one topic, `received` for the session, `waiting` for a handler.

    `on_drop` is called for each one beyond.
    """

    per_topic: int = 20
    received: int = 500
    waiting: int = 200
    on_drop: Callable[[], None] = _log_only


FLOOD_LIMITS: Final = FloodLimits()


class ReceivedMessage(Struct, frozen=True):
    """A message with what its acknowledgement needs; `packet_id` is 0 for QoS 0, which needs none."""

    message: Message
    packet_id: int


class ReceiveQueue:
    """The messages of one connection in the order of arrival."""

    def __init__(self, limits: FloodLimits = FLOOD_LIMITS) -> None:
        self._limits = limits
        self.waiting: deque[ReceivedMessage] = deque()
        self._topics: Counter[str] = Counter()
        self._messages = 0
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._dropped = LogThrottle(logger)

    def admits(self, head: PublishHead, size: int) -> bool:
        """Return whether there is room for a message of QoS 0; log the drop if not."""
        if (
            self._topics[head.topic] < self._limits.per_topic
            and self._messages < self._limits.received
            and self._bytes + size <= _QOS0_BYTES
        ):
            return True
        self._limits.on_drop()
        self._dropped.warning("mqtt message dropped", head.topic, topic=head.topic, qos=0, reason="flood")
        return False

    def put(self, received: ReceivedMessage) -> None:
        """Add a message."""
        self.waiting.append(received)
        if not received.packet_id:
            self._topics[received.message.topic] += 1
            self._messages += 1
            self._bytes += len(received.message.payload)
        self._arrived.set()

    def take(self) -> ReceivedMessage:
        """Remove and return the oldest message."""
        received = self.waiting.popleft()
        if not received.packet_id:
            topic = received.message.topic
            self._topics[topic] -= 1
            self._messages -= 1
            if not self._topics[topic]:
                del self._topics[topic]
            self._bytes -= len(received.message.payload)
        return received

    def wake(self) -> None:
        """Wake the reader in `wait`."""
        self._arrived.set()

    async def wait(self) -> None:
        """Wait for a message, or for `wake`."""
        self._arrived.clear()
        await self._arrived.wait()
