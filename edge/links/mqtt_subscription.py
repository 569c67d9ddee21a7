"""One subscription of an MQTT session: its queue of deliveries, and the handler that takes them in order."""

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import cache, partial

import structlog
from msgspec import Struct

from edge.foundation.backoff import delay
from edge.foundation.errors import Unavailable
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.task_group import TaskGroup, cancellation_reported
from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_connection import Connection
from edge.links.receive_queue import FLOOD_LIMITS, FloodLimits


def matches(topic_filter: str, topic: str) -> bool:
    """Return whether a subscription to `topic_filter`, shared or not, receives the messages of `topic`."""
    return bool(_check_of(topic_filter)(topic))


# All filters are kept, as only the settings name them; topics, which others choose and which can have 64 KiB, are not.
@cache
def _check_of(topic_filter: str) -> Callable[[str], object]:
    if topic_filter.startswith("$share/"):
        topic_filter = topic_filter.split("/", 2)[2]
    first, *rest = topic_filter.split("/")
    if not {"+", "#"} & {first, *rest}:
        return topic_filter.__eq__
    # A wildcard at the start receives no topic that begins with $.
    start = {"+": r"(?!\$)[^/]*", "#": r"(?!\$).*"}.get(first, re.escape(first))
    levels = [{"+": "/[^/]*", "#": "(?:/.*)?"}.get(level, "/" + re.escape(level)) for level in rest]
    return re.compile(start + "".join(levels), re.DOTALL).fullmatch


Settle = Callable[[], Awaitable[None]]
"""Waits until what a handler did with a message is durable."""
Handler = Callable[[Message], Awaitable[Settle | None]]
PoisonHandler = Callable[[Message, Exception], Awaitable[None]]
Key = Callable[[Message], str]
"""Returns the ordering key of a message: messages with one key are handled in order, those of others concurrently."""

_MOST_AT_ONCE = 20
"""How many messages are handled concurrently: as many as a broker may leave unacknowledged by default."""

logger = structlog.get_logger(__name__)


class Delivery(Struct, eq=False):
    """A message on its way to its handler, with the connection that can still take its acknowledgement."""

    message: Message
    packet_id: int
    connection: Connection
    handled: bool = False


class Subscription:
    """A topic filter with its handler, and the deliveries that wait for the handler."""

    def __init__(
        self,
        topic_filter: str,
        handler: Handler,
        on_poison: PoisonHandler | None,
        activate: Callable[[Connection, str], Awaitable[str | None]],
        retry_seconds: tuple[float, float] = (0.1, 2.0),
        key: Key | None = None,
        flood: FloodLimits = FLOOD_LIMITS,
    ) -> None:
        """Create a subscription; `activate` subscribes on a connection and returns the broker's refusal.

        `retry_seconds` are the shortest and the longest delay before the handler is called again. Without `key` all
        messages are handled in order.
        """
        self.topic_filter = topic_filter
        self.refusal: str | None = None
        """Why the broker does not grant it now; None when it does, or has not been asked."""
        self.active = asyncio.Event()
        self._handler = handler
        self._on_poison = on_poison
        self._activate = activate
        self._retry_seconds = retry_seconds
        self._key = key
        self._flood = flood
        self._queue: asyncio.Queue[Delivery] = asyncio.Queue()
        self._qos0: Counter[str] = Counter()
        self._qos0_waiting = 0
        self._dropped = LogThrottle(logger)
        self._loop = asyncio.get_running_loop()
        self._begun: list[float] = []
        """When each message that is with the handler came to it."""

    @property
    def busy_s(self) -> float:
        """How long the oldest message has been with the handler, 0 without any."""
        return self._loop.time() - min(self._begun) if self._begun else 0.0

    async def activate_on(self, connection: Connection) -> None:
        """Subscribe on a connection; raises Unavailable when the broker does not answer."""
        refused_before = self.refusal
        self.refusal = await self._activate(connection, self.topic_filter)
        if self.refusal is None and refused_before is not None:
            logger.info("mqtt subscription granted", topic_filter=self.topic_filter)
        elif self.refusal is not None and self.refusal != refused_before:
            advice = "Permit it in the access rules of the broker; until then it is retried."
            logger.error(
                "mqtt subscription refused", topic_filter=self.topic_filter, reason=self.refusal, advice=advice
            )
        self.active.set()

    def put(self, delivery: Delivery) -> None:
        """Queue a delivery; drop one of QoS 0 when too many of its topic, or of all topics, wait.

        QoS 1 is bounded by what the broker may leave unacknowledged.
        """
        if not delivery.packet_id:
            topic = delivery.message.topic
            if self._qos0[topic] >= self._flood.per_topic or self._qos0_waiting >= self._flood.waiting:
                self._flood.on_drop()
                self._dropped.warning("mqtt message dropped", topic, topic=topic, qos=0, reason="handler too slow")
                return
            self._qos0[topic] += 1
            self._qos0_waiting += 1
        self._queue.put_nowait(delivery)

    async def run(self, finish: Callable[[Delivery], None]) -> None:
        """Handle deliveries until cancelled; call `finish` with each in its order, once it is handled and settled."""
        if self._key is not None:
            await self._run_by_key(self._key, finish)
            return
        async with TaskGroup() as tasks:
            unsettled: asyncio.Queue[tuple[Delivery, Settle | None]] | None = None
            while True:
                delivery = await self.take()
                settle = await self.handle(delivery.message)
                if settle is None and unsettled is None:
                    finish(delivery)
                elif delivery.packet_id:
                    # One that needs no settling waits as well: acknowledgements leave in order (MQTT 5, 4.6).
                    if unsettled is None:
                        unsettled = asyncio.Queue()
                        tasks.create_task(_finish_settled(unsettled, finish), name=f"mqtt acks {self.topic_filter}")
                    unsettled.put_nowait((delivery, settle))

    async def _run_by_key(self, key: Key, finish: Callable[[Delivery], None]) -> None:
        async with TaskGroup() as tasks:
            last: dict[str, asyncio.Task[Settle | None]] = {}
            unfinished: asyncio.Queue[tuple[Delivery, Settle | None]] = asyncio.Queue(_MOST_AT_ONCE)
            tasks.create_task(_finish_settled(unfinished, finish), name=f"mqtt acks {self.topic_filter}")
            while True:
                delivery = await self.take()
                ordering_key = key(delivery.message)
                last = {text: task for text, task in last.items() if not task.done()}
                handling = self._handle_after(last.get(ordering_key), delivery.message)
                last[ordering_key] = tasks.create_task(handling, name=f"mqtt message of {self.topic_filter}")
                await unfinished.put((delivery, partial(_settle, last[ordering_key])))

    async def _handle_after(self, earlier: "asyncio.Task[Settle | None] | None", message: Message) -> Settle | None:
        if earlier is not None:
            await asyncio.wait((earlier,))
        return await self.handle(message)

    async def take(self) -> Delivery:
        """Wait for the next delivery."""
        delivery = await self._queue.get()
        if not delivery.packet_id:
            topic = delivery.message.topic
            self._qos0[topic] -= 1
            self._qos0_waiting -= 1
            if not self._qos0[topic]:
                del self._qos0[topic]
        return delivery

    async def handle(self, message: Message) -> Settle | None:
        """Call the handler until it works and return its answer; after a defect let `on_poison` keep the message."""
        began = self._loop.time()
        self._begun.append(began)
        try:
            return await self._handle(message)
        finally:
            self._begun.remove(began)

    async def _handle(self, message: Message) -> Settle | None:
        act = self._handler
        attempt = 0
        while True:
            try:
                with cancellation_reported():
                    return await act(message)
            except Unavailable as error:
                if attempt == 0:
                    logger.warning("mqtt message waits for its handler", topic=message.topic, reason=error.message)
                attempt += 1
                await asyncio.sleep(delay(attempt, *self._retry_seconds))
            except Exception as error:
                # One message with a defect must not stop those behind it.
                logger.exception("mqtt message could not be handled", topic=message.topic)
                if self._on_poison is None or act is not self._handler:
                    return None
                act = partial(_call_poison_handler, self._on_poison, error)


async def _finish_settled(
    unsettled: "asyncio.Queue[tuple[Delivery, Settle | None]]", finish: Callable[[Delivery], None]
) -> None:
    while True:
        delivery, settle = await unsettled.get()
        if settle is not None:
            await settle()
        finish(delivery)


async def _settle(handling: "asyncio.Task[Settle | None]") -> None:
    settle = await handling
    if settle is not None:
        await settle()


async def _call_poison_handler(on_poison: PoisonHandler, error: Exception, message: Message) -> None:
    await on_poison(message, error)
