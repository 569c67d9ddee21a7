"""One connection to an MQTT 5 broker, from CONNECT to the end of its socket."""

import asyncio
import math
import os
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, Final

import paho.mqtt.client as paho
import structlog
from paho.mqtt.client import error_string
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.foundation.ticks import until_tick
from edge.links.cloudevent_mqtt import Message
from edge.links.connection_fault import ConnectionFailed
from edge.links.mqtt_broker import RECEIVE_MAXIMUM, Broker
from edge.links.mqtt_confirmations import SUCCESS, Confirmations, UnconfirmedPublish
from edge.links.mqtt_publish import (
    MalformedPublish,
    PublishHead,
    decode_head,
    decode_publish,
    encode_publish,
)
from edge.links.mqtt_stream import MqttStream
from edge.links.receive_queue import ReceivedMessage, ReceiveQueue
from edge.model.equipment_connection import ConnectionFault

_PACKET_ID_BYTES = 2


class PahoSocket:
    """The socket for paho: it reads the packets that were fed to it and writes to the stream."""

    def __init__(self, write: Callable[[bytes], None]) -> None:
        self._write = write
        self._fed: deque[bytes] = deque()

    def feed(self, packet: bytes) -> None:
        """Queue a packet for paho to read."""
        self._fed.append(packet)

    def recv(self, most: int) -> bytes:
        """Return up to `most` bytes; raises BlockingIOError when none are left."""
        if not self._fed:
            raise BlockingIOError
        data = self._fed.popleft()
        if len(data) > most:
            self._fed.appendleft(data[most:])
        return data[:most]

    def send(self, data: bytes) -> int:
        """Write all of `data`; return its size."""
        self._write(bytes(data))
        return len(data)

    def setblocking(self, _flag: object) -> None:
        """Accept: nothing here blocks."""

    def fileno(self) -> int:
        """Return no descriptor: the stream has it."""
        return -1

    def close(self) -> None:
        """Drop the bytes that paho has not read."""
        self._fed.clear()


class ControlClient(paho.Client):
    """paho for all but PUBLISH and PUBACK: connect, subscribe, keep alive, disconnect.

    Two private methods of paho 2 are replaced, because it offers no public way: `_create_socket`, so that it works on
    our stream instead of a blocking socket, and `_mid_generate`, so that both of us take packet ids from one counter.
    """

    def __init__(self, client_id: str, socket: PahoSocket, next_packet_id: Callable[[], int]) -> None:
        super().__init__(CallbackAPIVersion.VERSION2, client_id, protocol=paho.MQTTv5, reconnect_on_failure=False)
        self._packet_stream = socket
        self._next_packet_id = next_packet_id

    def _create_socket(self) -> PahoSocket:  # type: ignore[override]
        return self._packet_stream

    def _mid_generate(self) -> int:
        return self._next_packet_id()


KEEPALIVE_SECONDS = 15
_KEEPALIVE_CHECK_S = 3
_CONNECT_SECONDS = 10.0

_MOST_PACKET_IDS = 65_535
MOST_UNACKNOWLEDGED = 16 * 1024 * 1024
"""Bytes of unacknowledged messages of QoS 1 that are kept; the broker sends those beyond them again."""

_WITH_WILL: Final = "Disconnect with will message"
_PINGREQ: Final = b"\xc0\x00"
_PINGRESP: Final = b"\xd0\x00"
_PAYLOAD_INVALID: Final = b"\x99"
_RETAINED_WHEN_NEW = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
_RETAINED_ALWAYS = SubscribeOptions.RETAIN_SEND_ON_SUBSCRIBE

RETRY_SECONDS = (0.1, 5.0)
"""The shortest and the longest delay before a session connects again."""

logger = structlog.get_logger(__name__)


class ReadRefused(Unavailable):
    """The broker does not allow reading a topic, until its access rules change."""


class NotReached(Unavailable):
    """No connection to the broker: nothing was sent to it."""


class Connection:
    """A live connection; after its loss every call raises Unavailable, and its packet ids are invalid."""

    def __init__(self, broker: Broker) -> None:
        self._address = broker.address
        self._answer_s = broker.answer_s
        self._end = ReasonCode(PacketTypes.DISCONNECT, _WITH_WILL) if broker.will_always else None
        self.stream = MqttStream(self._on_publish, self._on_puback, self._on_control, self._on_lost)
        self._socket = PahoSocket(self.stream.write)
        self._paho = ControlClient(broker.client_id, self._socket, self._next_packet_id)
        self._loop = asyncio.get_running_loop()
        self._connack: asyncio.Future[Properties | None] = self._loop.create_future()
        self._last_packet_id = 0
        self._confirmations = Confirmations(broker.answer_s)
        self._in_flight = asyncio.Semaphore(RECEIVE_MAXIMUM)
        self._largest_packet = math.inf
        self._received = ReceiveQueue(broker.flood)
        self._unacknowledged: dict[int, int] = {}
        self._unacknowledged_bytes = 0
        self._postponing = False
        self._ending = False
        self.has_session = False
        """Whether the broker has kept our session: unacknowledged messages come again. Without it their packet ids are
        those of other messages."""
        self._lost: str | Text | None = None
        self._keepalive: asyncio.TimerHandle | None = None
        self._paho.on_connect = self._on_connect
        self._paho.on_disconnect = lambda _client, _data, _flags, reason, _properties: self._on_lost(str(reason))
        self._paho.on_subscribe = self._on_suback
        self._paho.on_unsubscribe = self._on_suback

    async def open(self, broker: Broker) -> None:
        """Send CONNECT and wait for the broker's answer; raises Unavailable with its reason."""
        if broker.username:
            self._paho.username_pw_set(broker.username, broker.password or None)
        if broker.will is not None:
            self._paho.will_set(broker.will.topic, broker.will.payload, qos=1, retain=broker.will.retain)
        self._paho.connect(
            broker.host,
            broker.port,
            KEEPALIVE_SECONDS,
            clean_start=broker.clean_start,
            properties=_connect_properties(broker),
        )
        self._check_keepalive()
        connack = await self._connack
        if self._lost is not None:
            raise self._unavailable(
                Text.of("accepted the connection and ended it at once: {reason}", reason=self._lost)
            )
        self._largest_packet = getattr(connack, "MaximumPacketSize", math.inf)
        self._in_flight = asyncio.Semaphore(min(getattr(connack, "ReceiveMaximum", 100), 100))

    async def publish(self, message: Message, qos: int) -> bool:
        """Publish; of QoS 1 return after the PUBACK whether the broker knows a subscriber, of QoS 0 True.

        Text in the properties loses its control characters. Raises Unavailable without PUBACK or when the broker
        refuses it now, PublishRefused when the broker always refuses it, Refused(`topic`) for a topic that MQTT does
        not allow, Refused(`too_large`) for a packet above the broker's limit, which would end each connection.
        """
        if qos == 0:
            self._send(encode_publish(message, 0), message.topic)
            return True
        if not self._must_wait:
            return await (await self.start(message)).confirmed()
        try:
            # The wait for a place is part of the time.
            async with asyncio.timeout(self._answer_s):
                return await (await self.start(message)).confirmed()
        except TimeoutError:
            raise self._unavailable(Text.of("did not confirm a publish to {topic!r}", topic=message.topic)) from None

    @property
    def _must_wait(self) -> bool:
        """Whether a message has to wait for a place, or for a broker that does not read."""
        return self._in_flight.locked() or not self.stream.is_writable

    async def start(self, message: Message) -> UnconfirmedPublish:
        """Send a message of QoS 1 as soon as the broker has room for it, without waiting for its PUBACK.

        Messages that are started one after the other are sent in this order. Raises as `publish` does.
        """
        if self._must_wait:
            try:
                async with asyncio.timeout(self._answer_s):
                    await self._take_place()
            except TimeoutError:
                raise self._unavailable(
                    Text.of("had no room for a publish to {topic!r} in time", topic=message.topic)
                ) from None
        else:
            await self._take_place()
        packet_id = self._next_packet_id()
        puback: asyncio.Future[int] = self._confirmations.expect(packet_id)
        puback.add_done_callback(lambda _: self._release_place(packet_id))
        try:
            self._send(encode_publish(message, packet_id), message.topic)
        except BaseException:
            # Whatever the error is: no PUBACK comes for a packet that was not sent.
            puback.cancel()
            raise
        return UnconfirmedPublish(puback, self._address, message.topic)

    async def _take_place(self) -> None:
        await self._in_flight.acquire()
        try:
            await self.stream.drain()
        except BaseException:
            # Cancelled, too: the place is free for another packet.
            self._in_flight.release()
            raise

    def _release_place(self, packet_id: int) -> None:
        self._confirmations.drop(packet_id)
        self._in_flight.release()

    def _send(self, packet: bytes, topic: str) -> None:
        if len(packet) > self._largest_packet:
            problem = Text.of(
                "{count} bytes to {topic!r} are more than the MQTT broker takes: {largest_packet}",
                count=len(packet),
                topic=topic,
                largest_packet=self._largest_packet,
            )
            raise Refused("too_large", problem, "Raise the broker's max_packet_size.")
        if self._lost is not None:
            raise self._unavailable(Text.of("cannot publish to {topic!r}: {reason}", topic=topic, reason=self._lost))
        self.stream.write(packet)

    async def subscribe(self, topic_filter: str) -> str | None:
        """Subscribe at QoS 1; return the broker's reason when it refuses, else None.

        Retained messages come only if the broker did not have the subscription yet.
        """
        return await self._subscribe(topic_filter, SubscribeOptions(1, retainHandling=_RETAINED_WHEN_NEW))

    async def follow(self, topic_filter: str) -> str | None:
        """Subscribe as `subscribe` does; retained messages come each time."""
        return await self._subscribe(topic_filter, SubscribeOptions(1, retainHandling=_RETAINED_ALWAYS))

    async def ask(self, topic: str) -> None:
        """Subscribe to read retained messages, also when an earlier subscription still exists.

        They come at QoS 0, so that unacknowledged messages do not delay them. Raises ReadRefused.
        """
        if refusal := await self._subscribe(topic, SubscribeOptions(0, retainHandling=_RETAINED_ALWAYS)):
            raise self.read_refused(topic, refusal)

    def read_refused(self, topic: str, reason: str) -> ReadRefused:
        """Return the error of a topic that the broker does not allow to read."""
        text = Text.of(
            "the MQTT broker at {address} does not let us read {topic!r}: {reason}",
            address=self._address,
            topic=topic,
            reason=reason,
        )
        return ReadRefused(text, "Check the broker's access rules for this client.")

    async def _subscribe(self, topic_filter: str, options: SubscribeOptions) -> str | None:
        code, packet_id = self._paho.subscribe(topic_filter, options=options)
        reasons = await self._answer(code, packet_id, Text.of("the subscription to {topic!r}", topic=topic_filter))
        refusals = [str(reason) for reason in reasons if reason.is_failure]
        return refusals[0] if refusals else None

    async def unsubscribe(self, topic_filter: str) -> None:
        """Unsubscribe; raises Unavailable when the broker does not confirm."""
        code, packet_id = self._paho.unsubscribe(topic_filter)
        await self._answer(code, packet_id, Text.of("the end of the subscription to {topic!r}", topic=topic_filter))

    async def _answer(self, code: int, packet_id: int | None, what: Text) -> list[ReasonCode]:
        if code or packet_id is None or self._lost is not None:
            reason = self._lost or error_string(code)
            raise self._unavailable(Text.of("did not confirm {what}: {reason}", what=what, reason=reason))
        answer = self._confirmations.expect(packet_id)
        try:
            reasons: list[ReasonCode] = await answer
        except TimeoutError:
            raise self._unavailable(Text.of("did not confirm {what}", what=what)) from None
        finally:
            self._confirmations.drop(packet_id)
        return reasons

    async def messages(self) -> AsyncIterator[ReceivedMessage]:
        """Yield received messages until the connection is lost; then raise Unavailable with the reason."""
        while True:
            while self._received.waiting:
                yield self._received.take()
            if self._lost is not None:
                raise self._unavailable(Text.of("is gone: {reason}", reason=self._lost))
            await self._received.wait()

    def acknowledge(self, packet_id: int) -> bool:
        """Send the PUBACK of a packet of this connection; return False when the connection is closed.

        All acknowledgements of one turn of the loop are sent in one write. After messages were postponed, the one that
        leaves a quarter of the kept bytes ends the connection: on the next one the broker sends the others again.
        """
        if self._lost is not None or self._ending:
            return False
        self.stream.write(b"\x40\x02" + packet_id.to_bytes(2, "big"))
        self._release(packet_id)
        return True

    def _release(self, packet_id: int) -> None:
        self._unacknowledged_bytes -= self._unacknowledged.pop(packet_id, 0)
        if self._postponing and self._unacknowledged_bytes <= MOST_UNACKNOWLEDGED // 4:
            # A socket closed before its data is read takes sent acknowledgements with it: PINGRESP says they arrived.
            self._ending = True
            self.stream.write(_PINGREQ)

    async def close(self) -> None:
        """Send DISCONNECT and close, without waiting; pending calls raise Unavailable."""
        if self._keepalive is not None:
            self._keepalive.cancel()
        if self._lost is None:
            self._paho.disconnect(reasoncode=self._end)
        self.stream.close()
        self._on_lost(Text.of("we have closed the connection"))
        # One turn of the loop: DISCONNECT is sent before the socket is closed.
        await asyncio.sleep(0)

    def _next_packet_id(self) -> int:
        packet_id = self._last_packet_id % _MOST_PACKET_IDS + 1
        while packet_id in self._confirmations:
            packet_id = packet_id % _MOST_PACKET_IDS + 1
        self._last_packet_id = packet_id
        return packet_id

    def _on_connect(
        self, _client: object, _data: object, flags: Any, reason: ReasonCode, properties: Properties | None
    ) -> None:
        if self._connack.done():
            return
        if reason.is_failure:
            refusal = Text.of(
                "the MQTT broker at {address} refuses the connection: {reason}", address=self._address, reason=reason
            )
            self._connack.set_exception(ConnectionFailed(ConnectionFault.DECLINED, refusal))
        else:
            self.has_session = bool(flags.session_present)
            self._connack.set_result(properties)

    def _on_publish(self, flags: int, body: bytes) -> None:
        try:
            head = decode_head(flags, body)
            if self._keeps(head, len(body)) if head.packet_id else self._received.admits(head, len(body)):
                self._received.put(ReceivedMessage(decode_publish(head, body), head.packet_id))
        except MalformedPublish as error:
            logger.warning("mqtt message malformed", broker=self._address, reason=error.message)
            if error.packet_id is None:
                self._on_lost(Text.of("it sent a malformed message: {reason}", reason=error))
            elif error.packet_id:
                # A PUBACK with a failure code: the broker does not send the message again.
                self.stream.write(b"\x40\x03" + error.packet_id.to_bytes(2, "big") + _PAYLOAD_INVALID)
                self._release(error.packet_id)

    def _keeps(self, head: PublishHead, size: int) -> bool:
        """Return whether there is room for a message of QoS 1; after the first without room none is kept, in order.

        A broker that holds to the Receive Maximum comes here with large packets only. mosquitto 2.0.11 does not hold to
        it: each acknowledgement releases as many messages as the Receive Maximum allows, until its queue is empty.
        """
        if self._postponing:
            return False
        if self._unacknowledged and self._unacknowledged_bytes + size > MOST_UNACKNOWLEDGED:
            self._postponing = True
            kept = self._unacknowledged_bytes
            logger.warning("mqtt messages postponed", broker=self._address, topic=head.topic, bytes_unacknowledged=kept)
            return False
        self._unacknowledged_bytes += size - self._unacknowledged.get(head.packet_id, 0)
        self._unacknowledged[head.packet_id] = size
        return True

    def _on_puback(self, _flags: int, body: bytes) -> None:
        reason = body[_PACKET_ID_BYTES] if len(body) > _PACKET_ID_BYTES else SUCCESS
        self._confirmations.confirm(int.from_bytes(body[:_PACKET_ID_BYTES], "big"), reason)

    def _on_suback(self, _client: object, _data: object, packet_id: int, reasons: object, _properties: object) -> None:
        self._confirmations.confirm(packet_id, reasons)

    def _on_control(self, packet: bytes) -> None:
        self._socket.feed(packet)
        self._paho.loop_read()
        if self._ending and packet == _PINGRESP:
            self._paho.disconnect()
            self._on_lost(Text.of("we have closed it, so that the broker sends the postponed messages again"))

    def _check_keepalive(self) -> None:
        # On whole seconds, as the periodic tasks: an idle gateway wakes rarely.
        self._keepalive = self._loop.call_later(
            until_tick(self._loop.time(), _KEEPALIVE_CHECK_S), self._check_keepalive
        )
        self._paho.loop_misc()

    def _on_lost(self, reason: str | Text) -> None:
        if self._lost is not None:
            return
        self._lost = reason
        self.stream.close()
        self._received.wake()
        message = Text.of("the MQTT broker at {address} is gone: {reason}", address=self._address, reason=reason)
        error = ConnectionFailed(ConnectionFault.CLOSED, message)
        self._confirmations.fail(error)
        if not self._connack.done():
            self._connack.set_exception(error)
            # Its caller may have been cancelled.
            self._connack.exception()

    def _unavailable(self, problem: Text) -> Unavailable:
        return Unavailable(Text.of("the MQTT broker at {address} {problem}", address=self._address, problem=problem))


@asynccontextmanager
async def connect(broker: Broker) -> AsyncIterator[Connection]:
    """Connect once, continuing the session the broker kept; raises Unavailable with host, port and reason.

    It is NotReached when no CONNECT was sent.
    """
    connection = Connection(broker)
    try:
        failure: type[Unavailable] = NotReached
        try:
            async with asyncio.timeout(_CONNECT_SECONDS):
                await asyncio.get_running_loop().create_connection(
                    lambda: connection.stream, broker.host, broker.port, ssl=broker.tls
                )
                failure = Unavailable
                await connection.open(broker)
        except (OSError, Unavailable) as error:
            raise failure(
                Text.of(
                    "cannot connect to the MQTT broker at {address}: {reason}",
                    address=broker.address,
                    reason=_reason(error),
                ),
                "Is the broker running, are mqtt.url, username and password right, does its certificate hold? "
                "With `Couldn't open database` in its journal: docs/how-to/store-repair.md",
            ) from error
        yield connection
    finally:
        await connection.close()


def _connect_properties(broker: Broker) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = broker.session_expiry
    properties.ReceiveMaximum = broker.receive_maximum
    properties.MaximumPacketSize = broker.largest_packet
    return properties


def _reason(error: OSError | Unavailable) -> str | Text:
    match error:
        case TimeoutError() if error.errno is None:
            return Text.of("no answer in time")
        case ConnectionError() if error.errno is not None:
            return os.strerror(error.errno)
        case Unavailable():
            return error.text
        case _:
            return str(error)
