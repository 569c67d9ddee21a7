"""One MQTT 5 session that outlives its connections: subscribe, publish, acknowledge by hand."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial

import aiomqtt
import structlog

from edge.config import MqttSettings
from edge.errors import Refused, Unavailable
from edge.faults import FaultPoint, fault_point
from edge.links.background_task import background_task
from edge.links.backoff import Backoff, delay
from edge.links.cloudevent_mqtt import Message, to_event, to_message
from edge.links.mqtt_connection import (
    MAXIMUM_PACKET_SIZE,
    RECEIVE_MAXIMUM,
    Broker,
    Connection,
    PublishRefused,
    ReceivedMessage,
    broker_of,
    connect,
)
from edge.links.topic_probe import TopicProbe
from edge.model.cloudevent import CloudEvent

__all__ = [
    "Handler",
    "Message",
    "MqttSession",
    "PoisonHandler",
    "PublishRefused",
    "open_session",
    "to_event",
    "to_message",
]

Handler = Callable[[Message], Awaitable[None]]
PoisonHandler = Callable[[Message, Exception], Awaitable[None]]

SESSION_EXPIRY_SECONDS = 24 * 60 * 60
SUBSCRIBE_SECONDS = 10.0
RETRY_SECONDS = (0.1, 10.0)
# How long messages of a kept session wait for the subscription that takes them after a start.
UNCLAIMED_SECONDS = 60.0

_log = structlog.get_logger(__name__)


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
    """Open a session; from then on it reconnects by itself.

    No other process may use `client_id` at the same time. Times are in seconds. The broker keeps the session, with what
    arrives meanwhile, for `session_expiry`; messages of a kept session that no subscription has claimed by
    `unclaimed_after` are dropped. `on_change` is told each time the connection comes (True) or goes (False). The broker
    publishes `will` when it loses us; who leaves by the end of the block says so himself. What is larger than
    `largest_packet` bytes it drops. Raises Unavailable when the broker is not reached within `connect_timeout`,
    SettingsError when the settings cannot work.
    """
    broker = replace(broker_of(settings, client_id, session_expiry), will=will, largest_packet=largest_packet)
    session = MqttSession(broker, unclaimed_after, on_change)
    async with background_task(session.run(), f"mqtt {client_id}"):
        await session.wait_connected(connect_timeout)
        yield session


@dataclass(slots=True, eq=False)
class _Delivery:
    """A message on its way to its handler, with the connection that may still take its acknowledgement."""

    message: Message
    packet_id: int
    connection: Connection
    handled: bool = False


@dataclass(slots=True, eq=False)
class _Subscription:
    topic_filter: str
    handler: Handler
    on_poison: PoisonHandler | None
    activate: Callable[[Connection, str], Awaitable[str | None]]
    queue: asyncio.Queue[_Delivery] = field(default_factory=asyncio.Queue)
    active: asyncio.Event = field(default_factory=asyncio.Event)
    refusal: str | None = None


class MqttSession:
    """A persistent session that acknowledges by hand.

    Messages of one subscription are handled one by one in order, different subscriptions side by side. A
    message is acknowledged on the connection it came on, once its handler has returned. What a broker sends
    again after a reconnect, while the first is still in hand, takes over that place and is not handled twice.
    """

    def __init__(self, broker: Broker, unclaimed_after: float, on_change: Callable[[bool], None] | None) -> None:
        self._broker = broker
        self._unclaimed_after = unclaimed_after
        self.listeners: list[Callable[[bool], None]] = [on_change] if on_change else []
        """Told each time the connection comes (True) or goes (False)."""
        self.connection_count = 0
        """How many connections there were: another number is another connection."""
        self._questions = TopicProbe()
        self._connection: Connection | None = None
        self._connected = asyncio.Event()
        self._last_failure: Unavailable | None = None
        self._subscriptions: list[_Subscription] = []
        self._added: asyncio.Queue[_Subscription] = asyncio.Queue()
        self._unacknowledged: dict[int, _Delivery] = {}
        self._unclaimed: deque[_Delivery] | None = deque()

    @property
    def connected(self) -> bool:
        """Whether the broker is there now and has all our subscriptions."""
        return self._connected.is_set()

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
    ) -> None:
        """Publish a payload; as `send` does."""
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
        await self.send(message, qos=qos)

    async def send(self, message: Message, *, qos: int = 1) -> None:
        """Publish a message and return once the broker has it; raises as Connection.publish does."""
        await self._live().publish(message, qos)

    def require_connection(self, connection: int) -> None:
        """Raise Unavailable unless the connection of this number, by `connection_count`, is there."""
        if self._connection is None or self.connection_count != connection:
            raise self._not_connected()

    def _live(self) -> Connection:
        if self._connection is None:
            raise self._not_connected()
        return self._connection

    def _not_connected(self) -> Unavailable:
        reason = f"not connected to the MQTT broker at {self._broker.address}"
        return Unavailable(reason, "The session reconnects by itself; try again later.")

    async def answer(self, request: Message, event: CloudEvent) -> None:
        """Send an event to where a request wants its answer, with its correlation data; raises Unavailable.

        Who names a topic that we may not write to gets no answer, and does not keep others from theirs.
        """
        if request.response_topic is None:
            return
        try:
            await self.send(to_message(event, request.response_topic, correlation_data=request.correlation_data))
        except (PublishRefused, Refused) as error:
            _log.warning("answer dropped", topic=request.response_topic, type=event.type, reason=error.message)

    async def subscribe(self, topic_filter: str, handler: Handler, *, on_poison: PoisonHandler | None = None) -> None:
        """Hand what matches `topic_filter` to `handler`, for the life of the session.

        Returns once the broker has confirmed. A handler that raises Unavailable is called again, with growing
        delays, until it works. Any other error is a defect: it is logged, `on_poison` may keep the message,
        and it is acknowledged. Filters of one session must not overlap: a broker may deliver once or once for
        each. Raises Unavailable when the broker does not confirm.
        """
        await self._subscribe(_Subscription(topic_filter, handler, on_poison, Connection.subscribe))

    async def follow(self, topic: str, handler: Handler) -> None:
        """Subscribe as `subscribe` does to a topic that tells a state: what is retained comes on each connection.

        So it does in a session that the broker has kept over a restart of ours.
        """
        await self._subscribe(_Subscription(topic, handler, None, Connection.follow))

    async def _subscribe(self, subscription: _Subscription) -> None:
        self._subscriptions.append(subscription)
        self._added.put_nowait(subscription)
        self._claim(subscription)
        try:
            async with asyncio.timeout(SUBSCRIBE_SECONDS):
                if self._connection is not None:
                    # If the connection fails in this moment, the next one subscribes.
                    with suppress(Unavailable):
                        await _activate(self._connection, subscription)
                await subscription.active.wait()
        except TimeoutError:
            subscription.refusal = "no answer in time"
        if subscription.refusal is not None:
            raise Unavailable(
                f"no subscription to {subscription.topic_filter!r} at {self._broker.address}: {subscription.refusal}",
                "Check that the MQTT broker is reachable, and its access rules for this client.",
            )

    async def read_retained(self, topic: str, seconds: float = 2.0) -> Message | None:
        """Ask the broker what it retains on a topic; None when that does not come in time.

        Nobody may subscribe to the topic in this session meanwhile. Raises Unavailable when the broker is gone,
        ReadRefused when it refuses the subscription. One that grants it may pass us over though: see `check_readable`.
        """
        return await self._questions.read_retained(self._live(), topic, seconds)

    async def check_readable(self, topic: str, seconds: float = 5.0) -> None:
        """Make sure that what is published to a topic comes to us: an empty message that is not retained.

        Raises as `read_retained`, and ReadRefused when nothing comes in time.
        """
        await self._questions.check_readable(self._live(), topic, seconds)

    async def wait_connected(self, seconds: float) -> None:
        """Wait until the broker is there. Raises Unavailable with the last reason when it is not in time."""
        try:
            async with asyncio.timeout(seconds):
                await self._connected.wait()
        except TimeoutError:
            message = f"the MQTT broker at {self._broker.address} did not answer within {seconds:g} s"
            raise self._last_failure or Unavailable(message, "Is the broker running?") from None

    async def run(self) -> None:
        """Keep the session connected and its handlers at work until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._stay_connected(), name=f"mqtt connection {self._broker.client_id}")
            tasks.create_task(self._give_up_unclaimed(), name=f"mqtt unclaimed {self._broker.client_id}")
            while True:
                subscription = await self._added.get()
                tasks.create_task(self._work(subscription), name=f"mqtt {subscription.topic_filter}")

    async def _stay_connected(self) -> None:
        backoff = Backoff(shortest=0.1, longest=5.0, stable=5.0)
        while True:
            try:
                async with connect(self._broker) as connection:
                    await self._use(connection)
            except Unavailable as error:
                self._note_failure(error)
            await backoff.pause()

    async def _use(self, connection: Connection) -> None:
        self._connection = connection
        self.connection_count += 1
        try:
            for subscription in tuple(self._subscriptions):
                await _activate(connection, subscription)
            self._note_connected()
            async for incoming in connection.messages():
                self._take(connection, incoming)
        finally:
            self._connection = None
            if self.connected:
                self._connected.clear()
                self._tell_change()

    def _note_connected(self) -> None:
        self._last_failure = None
        self._connected.set()
        _log.info("mqtt connected", broker=self._broker.address, client_id=self._broker.client_id)
        self._tell_change()

    def _note_failure(self, error: Unavailable) -> None:
        # Every attempt of an outage fails in its own words; the first says that it began, and the end is said
        # on its own.
        if self._last_failure is None:
            _log.warning("mqtt not connected, trying on", broker=self._broker.address, reason=error.message)
        self._last_failure = error

    def _tell_change(self) -> None:
        for watch in self.listeners:
            watch(self.connected)

    def _take(self, connection: Connection, incoming: ReceivedMessage) -> None:
        delivery = _Delivery(incoming.message, incoming.packet_id, connection)
        if incoming.packet_id:
            known = self._unacknowledged.get(incoming.packet_id)
            if known is not None and known.connection is not connection and known.message == incoming.message:
                known.connection = connection
                if known.handled:
                    self._acknowledge(known)
                return
            self._unacknowledged[incoming.packet_id] = delivery
        if self._questions.take(incoming.message):
            delivery.handled = True
            self._acknowledge(delivery)
            return
        topic = aiomqtt.Topic(incoming.message.topic)
        for subscription in self._subscriptions:
            if topic.matches(subscription.topic_filter):
                _enqueue(subscription, delivery)
                return
        if self._unclaimed is None:
            self._drop_unclaimed(delivery)
        elif incoming.packet_id:
            self._unclaimed.append(delivery)

    async def _work(self, subscription: _Subscription) -> None:
        while True:
            delivery = await subscription.queue.get()
            await _handle(subscription, delivery.message)
            fault_point(FaultPoint.HANDLED)
            delivery.handled = True
            self._acknowledge(delivery)

    def _acknowledge(self, delivery: _Delivery) -> None:
        if not delivery.packet_id or delivery.connection is not self._connection:
            return
        if delivery.connection.acknowledge(delivery.packet_id):
            self._unacknowledged.pop(delivery.packet_id, None)

    def _claim(self, subscription: _Subscription) -> None:
        """Hand over what a kept session delivered before this subscription was made."""
        waiting = self._unclaimed or deque()
        for delivery in tuple(waiting):
            if aiomqtt.Topic(delivery.message.topic).matches(subscription.topic_filter):
                waiting.remove(delivery)
                _enqueue(subscription, delivery)

    async def _give_up_unclaimed(self) -> None:
        """Acknowledge what nobody asks for (a subscription of former settings), so that it blocks nothing."""
        await asyncio.sleep(self._unclaimed_after)
        unclaimed, self._unclaimed = self._unclaimed or (), None
        for delivery in unclaimed:
            self._drop_unclaimed(delivery)

    def _drop_unclaimed(self, delivery: _Delivery) -> None:
        _log.warning("mqtt message dropped: no subscription takes it", topic=delivery.message.topic)
        delivery.handled = True
        self._acknowledge(delivery)


async def _activate(connection: Connection, subscription: _Subscription) -> None:
    subscription.refusal = await subscription.activate(connection, subscription.topic_filter)
    if subscription.refusal is not None:
        _log.error("mqtt subscription refused", topic_filter=subscription.topic_filter, reason=subscription.refusal)
    subscription.active.set()


def _enqueue(subscription: _Subscription, delivery: _Delivery) -> None:
    # QoS 1 is bounded by what the broker may leave unacknowledged; QoS 0 has no such bound and may be lost by
    # its nature.
    if not delivery.packet_id and subscription.queue.qsize() >= RECEIVE_MAXIMUM:
        _log.warning("mqtt message of QoS 0 dropped: its handler is too slow", topic=delivery.message.topic)
        return
    subscription.queue.put_nowait(delivery)


async def _handle(subscription: _Subscription, message: Message) -> None:
    """Have a message handled, however long what it needs is unavailable."""
    act = subscription.handler
    attempt = 0
    while True:
        try:
            await act(message)
        except Unavailable as error:
            if attempt == 0:
                _log.warning("mqtt message waits for its handler", topic=message.topic, reason=error.message)
            attempt += 1
            await asyncio.sleep(delay(attempt, *RETRY_SECONDS))
        except Exception as error:  # noqa: BLE001 - a message we cannot digest must not stop those behind it
            _log.exception("mqtt message could not be handled", topic=message.topic)
            if subscription.on_poison is None or act is not subscription.handler:
                return
            act = partial(_set_aside, subscription.on_poison, error)
        else:
            return


async def _set_aside(on_poison: PoisonHandler, error: Exception, message: Message) -> None:
    await on_poison(message, error)
