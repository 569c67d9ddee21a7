"""Keeps one MQTT 5 session over all its connections: subscribe, publish, acknowledge after handling."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress

import structlog
from msgspec.structs import replace

from edge.config import SESSION_EXPIRY_SECONDS, MqttSettings
from edge.foundation.backoff import Backoff
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.fault_points import FaultPoint, fault_point
from edge.foundation.task_group import TaskGroup, background_task
from edge.foundation.text import Text
from edge.foundation.ticks import next_tick
from edge.links.cloudevent_mqtt import Message, to_event, to_message
from edge.links.mqtt_broker import ANSWER_SECONDS, MAXIMUM_PACKET_SIZE, RECEIVE_MAXIMUM, Broker, broker_of
from edge.links.mqtt_confirmations import PublishRefused, UnconfirmedPublish
from edge.links.mqtt_connection import RETRY_SECONDS, Connection, connect
from edge.links.mqtt_subscription import Delivery, Handler, Key, PoisonHandler, Settle, Subscription, matches
from edge.links.receive_queue import FLOOD_LIMITS, FloodLimits, ReceivedMessage
from edge.links.topic_probe import TopicProbe
from edge.model.cloudevent import CloudEvent

__all__ = [
    "Handler",
    "Message",
    "MqttSession",
    "PoisonHandler",
    "PublishRefused",
    "Settle",
    "SubscriptionRefused",
    "keep_session",
    "open_session",
    "to_event",
    "to_message",
]

SUBSCRIBE_SECONDS = 10.0
UNCLAIMED_SECONDS = 60.0
"""Time after a start in which messages of a kept session wait for their subscription."""

_RETRY_REFUSED_SECONDS = 3.0
logger = structlog.get_logger(__name__)


class SubscriptionRefused(Unavailable):
    """The broker refuses a subscription now; the session retries it."""


@asynccontextmanager
async def open_session(
    settings: MqttSettings,
    client_id: str,
    *,
    connect_timeout: float = 10.0,
    session_expiry: int = SESSION_EXPIRY_SECONDS,
    unclaimed_after: float = UNCLAIMED_SECONDS,
    on_change: Callable[[bool], None] | None = None,
    will: Message | None = None,
    largest_packet: int = MAXIMUM_PACKET_SIZE,
) -> AsyncIterator["MqttSession"]:
    """Open a session that reconnects by itself, as `keep_session`, and wait for its first connection.

    Raises Unavailable after `connect_timeout` without the broker, SettingsError when the settings cannot work.
    """
    async with keep_session(
        settings,
        client_id,
        session_expiry=session_expiry,
        unclaimed_after=unclaimed_after,
        on_change=on_change,
        will=will,
        largest_packet=largest_packet,
    ) as session:
        await session.wait_connected(connect_timeout)
        yield session


@asynccontextmanager
async def keep_session(
    settings: MqttSettings,
    client_id: str,
    *,
    session_expiry: int = SESSION_EXPIRY_SECONDS,
    unclaimed_after: float = UNCLAIMED_SECONDS,
    on_change: Callable[[bool], None] | None = None,
    will: Message | None = None,
    largest_packet: int = MAXIMUM_PACKET_SIZE,
    receive_maximum: int = RECEIVE_MAXIMUM,
    answer_s: float = ANSWER_SECONDS,
    retry_refused: float = _RETRY_REFUSED_SECONDS,
    flood: FloodLimits = FLOOD_LIMITS,
) -> AsyncIterator["MqttSession"]:
    """Keep a session that connects and reconnects by itself; it is usable before the broker is there.

    No other process may use `client_id` at the same time. Times are in seconds. While we are disconnected, the broker
    keeps the session and its messages for `session_expiry`; messages of a kept session without a subscription are
    dropped after `unclaimed_after`. `on_change` is called with True at each connect and with False at each disconnect.
    The broker publishes `will` when the connection is lost, not when the block ends. It drops packets larger than
    `largest_packet` bytes, sends at most `receive_maximum` unacknowledged messages of QoS 1, and has to confirm within
    `answer_s`. Refused subscriptions are retried every `retry_refused`; of QoS 0 as many messages wait as `flood` says.
    Raises SettingsError for unusable settings.
    """
    limits = {"largest_packet": largest_packet, "receive_maximum": receive_maximum, "flood": flood}
    broker = replace(broker_of(settings, client_id, session_expiry), will=will, answer_s=answer_s, **limits)
    session = MqttSession(broker, unclaimed_after, on_change, retry_refused)
    async with background_task(session.run(), f"mqtt {client_id}"):
        yield session


class MqttSession:
    """A persistent session that acknowledges a message after its handler has returned.

    Messages of one subscription are handled in order, one at a time, or one of each ordering key; subscriptions work
    side by side. When the broker redelivers a message after a reconnect while its handler still works, the redelivery
    only replaces the packet id: the message is not handled twice. `failure` is why it is not connected.
    """

    def __init__(
        self,
        broker: Broker,
        unclaimed_after: float,
        on_change: Callable[[bool], None] | None,
        retry_refused: float,
    ) -> None:
        self._broker = broker
        self._unclaimed_after = unclaimed_after
        self._retry_refused_s, self._flood = retry_refused, broker.flood
        self.listeners: list[Callable[[bool], None]] = [on_change] if on_change else []
        """Called with True at each connect and with False at each disconnect."""
        self.connection_count = 0
        """Number of connections since the start; it identifies the current one."""
        self._probe = TopicProbe()
        self._connection: Connection | None = None
        self._connected, self._attempted = asyncio.Event(), asyncio.Event()
        self.failure: Unavailable | None = None
        self._subscriptions: list[Subscription] = []
        self._added: asyncio.Queue[Subscription] = asyncio.Queue()
        self._unacknowledged: dict[int, Delivery] = {}
        self._unclaimed: deque[Delivery] | None = deque()

    @property
    def connected(self) -> bool:
        """Whether the session is connected; all subscriptions are active except `refused`."""
        return self._connected.is_set()

    def refused(self) -> list[str]:
        """Return the topic filters of the subscriptions that the broker does not grant now."""
        return [subscription.topic_filter for subscription in self._subscriptions if subscription.refusal is not None]

    def stalled(self, seconds: float) -> list[str]:
        """Return the topic filters with a message that its handler has had for longer: those behind it wait."""
        return [subscription.topic_filter for subscription in self._subscriptions if subscription.busy_s > seconds]

    async def publish(
        self,
        topic: str,
        payload: bytes = b"",
        *,
        qos: int = 1,
        retain: bool = False,
        content_type: str | None = None,
        user_properties: Mapping[str, str] | None = None,
        response_topic: str | None = None,
        correlation_data: bytes | None = None,
        expiry: int | None = None,
    ) -> bool:
        """Publish a payload as `send` does."""
        message = Message(
            topic,
            payload,
            content_type=content_type,
            user_properties=user_properties or {},
            response_topic=response_topic,
            correlation_data=correlation_data,
            expiry=expiry,
            retain=retain,
        )
        return await self.send(message, qos=qos)

    async def send(self, message: Message, *, qos: int = 1) -> bool:
        """Publish a message; return whether the broker knows a subscriber, of QoS 0 always True.

        Returns after the PUBACK; raises as Connection.publish does.
        """
        return await self._require_connection().publish(message, qos)

    async def start(self, message: Message) -> UnconfirmedPublish:
        """Send a message of QoS 1, in the order of the calls, without waiting for its PUBACK; raises as `send` does."""
        return await self._require_connection().start(message)

    def require_connection(self, connection: int) -> None:
        """Raise Unavailable unless `connection` is the current one, by `connection_count`."""
        if self._connection is None or self.connection_count != connection:
            raise self._not_connected()

    def _require_connection(self) -> Connection:
        if self._connection is None:
            raise self._not_connected()
        return self._connection

    def _not_connected(self) -> Unavailable:
        message = Text.of("not connected to the MQTT broker at {address}", address=self._broker.address)
        return Unavailable(message, "The session reconnects by itself; try again later.")

    async def answer(self, request: Message, event: CloudEvent) -> None:
        """Publish the answer to a request; drop one that the broker refuses. Raises Unavailable."""
        if request.response_topic is None:
            return
        try:
            await self.send(to_message(event, request.response_topic, correlation_data=request.correlation_data))
        except (PublishRefused, Refused) as error:
            logger.warning("answer dropped", topic=request.response_topic, type=event.type, reason=error.message)

    async def subscribe(
        self, topic_filter: str, handler: Handler, *, on_poison: PoisonHandler | None = None, key: Key | None = None
    ) -> None:
        """Call `handler` with each message that matches `topic_filter`, for the life of the session.

        Returns when the broker has confirmed; without a connection at once, and the next one subscribes. A handler that
        raises Unavailable is retried. After any other error `on_poison` can keep the message. It is acknowledged in
        order of arrival, after what the handler returns was awaited. With `key` only messages with the same key wait
        for each other. Filters must not overlap: some brokers deliver once for each. Raises Unavailable.
        """
        subscription = Subscription(topic_filter, handler, on_poison, Connection.subscribe, key=key, flood=self._flood)
        await self._subscribe(subscription)

    async def follow(self, topic: str, handler: Handler) -> None:
        """Subscribe to a state: its retained message is delivered on each connection. Raises as `subscribe` does."""
        await self._subscribe(Subscription(topic, handler, None, Connection.follow))

    async def _subscribe(self, subscription: Subscription) -> None:
        self._subscriptions.append(subscription)
        self._added.put_nowait(subscription)
        self._claim(subscription)
        if self._connection is None:
            return
        try:
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                # If the connection fails in this moment, the next one subscribes.
                with suppress(Unavailable):
                    await subscription.activate_on(self._connection)
                await subscription.active.wait()
        except TimeoutError:
            subscription.refusal = "no answer in time"
        if subscription.refusal is not None:
            raise SubscriptionRefused(
                Text.of(
                    "no subscription to {topic_filter!r} at {address}: {refusal}",
                    topic_filter=subscription.topic_filter,
                    address=self._broker.address,
                    refusal=subscription.refusal,
                ),
                "Check that the MQTT broker is reachable, and its access rules for this client.",
            )

    async def read_retained(self, topic: str, seconds: float = 2.0) -> Message | None:
        """Return the retained message of a topic; None when none comes in time.

        This session must not subscribe to the topic meanwhile. Raises Unavailable when the connection is lost,
        ReadRefused when the broker refuses the subscription. Some brokers grant it and deliver nothing: see
        `check_readable`.
        """
        return await self._probe.read_retained(self._require_connection(), topic, seconds)

    async def check_readable(self, topic: str, seconds: float = 5.0) -> None:
        """Check that we receive what is published to a topic, by publishing an empty message that is not retained.

        Raises as `read_retained`, and ReadRefused when the message does not come in time.
        """
        await self._probe.check_readable(self._require_connection(), topic, seconds)

    async def wait_connected(self, seconds: float) -> None:
        """Wait for the connection. Raises Unavailable with the last reason when it takes too long."""
        try:
            async with asyncio.timeout(seconds):
                await self._connected.wait()
        except TimeoutError:
            message = Text.of(
                "the MQTT broker at {address} did not answer within {seconds:g} s",
                address=self._broker.address,
                seconds=seconds,
            )
            raise self.failure or Unavailable(message, "Is the broker running?") from None

    async def wait_attempted(self, seconds: float) -> None:
        """Wait for the first connection or the first failed attempt, at most `seconds`."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._attempted.wait()

    async def run(self) -> None:
        """Keep the session connected and run its handlers until cancelled."""
        async with TaskGroup() as tasks:
            tasks.create_task(self._stay_connected(), name=f"mqtt connection {self._broker.client_id}")
            tasks.create_task(self._expire_unclaimed(), name=f"mqtt unclaimed {self._broker.client_id}")
            while True:
                subscription = await self._added.get()
                tasks.create_task(subscription.run(self._finish), name=f"mqtt {subscription.topic_filter}")

    async def _stay_connected(self) -> None:
        backoff = Backoff(*RETRY_SECONDS, stable=5.0)
        while True:
            try:
                async with connect(self._broker) as connection:
                    await self._use(connection)
            except Unavailable as error:
                self._on_failure(error)
            await backoff.pause()

    async def _use(self, connection: Connection) -> None:
        self._unacknowledged = self._unacknowledged if connection.has_session else {}
        self._connection = connection
        self.connection_count += 1
        try:
            for subscription in tuple(self._subscriptions):
                await subscription.activate_on(connection)
            self._on_connected()
            async with background_task(self._retry_refused(connection), "retry refused subscriptions"):
                async for incoming in connection.messages():
                    self._dispatch(connection, incoming)
        finally:
            self._connection = None
            if self.connected:
                self._connected.clear()
                self._notify_listeners()

    async def _retry_refused(self, connection: Connection) -> None:
        while True:
            await next_tick(self._retry_refused_s)
            for subscription in [item for item in self._subscriptions if item.refusal is not None]:
                # Without an answer the next attempt follows; a lost connection ends this task.
                with suppress(Unavailable):
                    await subscription.activate_on(connection)

    def _on_connected(self) -> None:
        self.failure = None
        self._connected.set()
        self._attempted.set()
        logger.info("mqtt connected", broker=self._broker.address, client_id=self._broker.client_id)
        self._notify_listeners()

    def _on_failure(self, error: Unavailable) -> None:
        # Only the first failed attempt of an outage is logged.
        if self.failure is None:
            facts = {"reason": error.message, "advice": error.advice}
            logger.warning("mqtt not connected, retrying", broker=self._broker.address, **facts)
        self.failure = error
        self._attempted.set()

    def _notify_listeners(self) -> None:
        for listener in self.listeners:
            listener(self.connected)

    def _dispatch(self, connection: Connection, incoming: ReceivedMessage) -> None:
        delivery = Delivery(incoming.message, incoming.packet_id, connection)
        if incoming.packet_id:
            known = self._unacknowledged.get(incoming.packet_id)
            if known is not None and known.connection is not connection and known.message == incoming.message:
                known.connection = connection
                if known.handled:
                    self._acknowledge(known)
                return
            self._unacknowledged[incoming.packet_id] = delivery
        if self._probe.take(incoming.message):
            self._acknowledge(delivery)
            return
        for subscription in self._subscriptions:
            if matches(subscription.topic_filter, incoming.message.topic):
                subscription.put(delivery)
                return
        if self._unclaimed is None:
            self._drop_unclaimed(delivery)
        elif incoming.packet_id:
            self._unclaimed.append(delivery)

    def _finish(self, delivery: Delivery) -> None:
        fault_point(FaultPoint.HANDLED)
        self._acknowledge(delivery)

    def _acknowledge(self, delivery: Delivery) -> None:
        delivery.handled = True
        is_awaited = delivery.packet_id and delivery.connection is self._connection
        if is_awaited and delivery.connection.acknowledge(delivery.packet_id):
            self._unacknowledged.pop(delivery.packet_id, None)

    def _claim(self, subscription: Subscription) -> None:
        """Queue messages of a kept session that arrived before this subscription."""
        waiting = self._unclaimed or deque()
        for delivery in tuple(waiting):
            if matches(subscription.topic_filter, delivery.message.topic):
                waiting.remove(delivery)
                subscription.put(delivery)

    async def _expire_unclaimed(self) -> None:
        """Acknowledge messages without a subscription (former settings), so that they do not block others."""
        await asyncio.sleep(self._unclaimed_after)
        unclaimed, self._unclaimed = self._unclaimed or (), None
        for delivery in unclaimed:
            self._drop_unclaimed(delivery)

    def _drop_unclaimed(self, delivery: Delivery) -> None:
        logger.warning("mqtt message dropped", topic=delivery.message.topic, reason="no subscription")
        self._acknowledge(delivery)
