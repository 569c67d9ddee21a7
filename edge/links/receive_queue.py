"""Received MQTT messages until the session takes them: the broker bounds those of QoS 1, this queue those of QoS 0."""

import asyncio
from collections import Counter, deque

import structlog
from msgspec import Struct

from edge.links.cloudevent_mqtt import Message
from edge.links.log_throttle import LogThrottle
from edge.links.mqtt_publish import PublishHead

QOS0_PER_TOPIC = 20
"""Messages of QoS 0 of one topic that wait for the session; more are dropped."""
_QOS0_MESSAGES = 500
_QOS0_BYTES = 4 * 1024 * 1024

_log = structlog.get_logger(__name__)


class ReceivedMessage(Struct, frozen=True):
    """A message with what its acknowledgement needs; `packet_id` is 0 for QoS 0, which needs none."""

    message: Message
    packet_id: int


class ReceiveQueue:
    """The messages of one connection in the order of arrival."""

    def __init__(self) -> None:
        self.waiting: deque[ReceivedMessage] = deque()
        self._topics: Counter[str] = Counter()
        self._bytes = 0
        self._arrived = asyncio.Event()
        self._dropped = LogThrottle(_log)

    def admits(self, head: PublishHead, size: int) -> bool:
        """Return whether there is room for a message of QoS 0; log the drop if not."""
        if (
            self._topics[head.topic] < QOS0_PER_TOPIC
            and self._topics.total() < _QOS0_MESSAGES
            and self._bytes + size <= _QOS0_BYTES
        ):
            return True
        self._dropped.warning("mqtt message dropped", head.topic, topic=head.topic, qos=0, reason="flood")
        return False

    def put(self, received: ReceivedMessage) -> None:
        """Add a message."""
        self.waiting.append(received)
        if not received.packet_id:
            self._topics[received.message.topic] += 1
            self._bytes += len(received.message.payload)
        self._arrived.set()

    def take(self) -> ReceivedMessage:
        """Remove and return the oldest message."""
        received = self.waiting.popleft()
        if not received.packet_id:
            topic = received.message.topic
            self._topics[topic] -= 1
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
