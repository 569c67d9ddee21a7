"""One connection to an MQTT 5 broker, from CONNECT to the end of its socket."""

import asyncio
import math
import re
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiomqtt
import paho.mqtt.properties
from paho.mqtt.client import MQTT_ERR_SUCCESS, error_string
from paho.mqtt.exception import MalformedPacket
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode
from paho.mqtt.subscribeoptions import SubscribeOptions

from edge.config import MqttSettings
from edge.errors import Refused, SettingsError, Unavailable
from edge.instant import now_ms
from edge.links.cloudevent_mqtt import Message

PORTS = {"mqtt": 1883, "mqtts": 8883}
# What the broker may have on its way to us without our acknowledgement: the bound of all our queues.
RECEIVE_MAXIMUM = 20
# A larger packet the broker drops before it reaches us. With the number above it bounds what others can make us hold.
MAXIMUM_PACKET_SIZE = 8 * 1024 * 1024
KEEPALIVE_SECONDS = 15
ANSWER_SECONDS = 5.0

# A broker ends the connection of a client that sends one of these in a string (MQTT 5, 1.5.4; mosquitto
# does), and the next connection too if the client insists.
_FORBIDDEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef"
    + "".join(f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x11_0000, 0x1_0000))
    + "]"
)
# PUBACK reason codes that say no to this very message: not authorized, topic name invalid, payload format invalid.
_NEVER = frozenset({0x87, 0x90, 0x99})
_LONGEST_STRING = 65_535
_LENGTH_BYTES = 2
# Type and length of a PUBLISH packet at the most, the length of its topic, and its id.
_FIXED_BYTES = 1 + 4 + 2 + 2

_RETAINED_WHEN_NEW = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
_RETAINED_ALWAYS = SubscribeOptions.RETAIN_SEND_ON_SUBSCRIBE


class SocketLike(Protocol):
    """A socket of any kind that paho opens."""

    def fileno(self) -> int:
        """Give its descriptor; -1 once it is closed."""
        ...


class PublishRefused(Unavailable):
    """The broker does not take this message, however often it is sent, unless somebody changes its access rules."""


class ReadRefused(Unavailable):
    """The broker keeps from us what is on a topic, unless somebody changes its access rules."""


@dataclass(frozen=True, slots=True)
class Broker:
    """Where the broker is and who we are to it; it keeps our session for `session_expiry` seconds.

    It drops what is larger than `largest_packet` bytes before that reaches us, and publishes `will` as soon as it loses
    us without our word.
    """

    host: str
    port: int
    client_id: str
    session_expiry: int
    username: str = ""
    password: str = ""
    tls: ssl.SSLContext | None = None
    will: Message | None = None
    largest_packet: int = MAXIMUM_PACKET_SIZE

    @property
    def address(self) -> str:
        """Host and port as a person writes them."""
        return f"{self.host}:{self.port}"


def broker_of(settings: MqttSettings, client_id: str, session_expiry: int) -> Broker:
    """Read the broker's address, certificates and keys. Raises SettingsError naming what cannot be read."""
    parts = urlsplit(settings.url)
    try:
        default_port = PORTS[parts.scheme]
        # A host name that no resolver could take fails here.
        host = (parts.hostname or ".").encode("idna").decode()
        port = parts.port or default_port
    except (KeyError, ValueError):
        problem = f"mqtt.url: {settings.url!r} is not mqtt://host:port or mqtts://host:port"
        raise SettingsError([problem]) from None
    return Broker(
        host=host,
        port=port,
        client_id=client_id,
        session_expiry=session_expiry,
        username=settings.username,
        password=settings.password,
        tls=_tls_context(settings) if parts.scheme == "mqtts" else None,
    )


def _tls_context(settings: MqttSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file or None)
    except OSError as error:
        files = ", ".join(filter(None, (settings.ca_file, settings.cert_file, settings.key_file)))
        problem = f"mqtt: certificate or key cannot be loaded ({files}): {error}"
        raise SettingsError(
            [problem], "Check the paths, that the service may read them, and that they are PEM."
        ) from None
    return context


@dataclass(frozen=True, slots=True)
class ReceivedMessage:
    """A message with what its acknowledgement needs; `packet_id` is 0 for QoS 0, which takes none."""

    message: Message
    packet_id: int


class Connection:
    """A live connection; once it is lost every call raises Unavailable, and its packets are nobody's."""

    def __init__(self, client: aiomqtt.Client, address: str) -> None:
        self._client = client
        self._address = address
        self._pubacks: dict[int, asyncio.Future[ReasonCode]] = {}
        # The one place that reaches through aiomqtt 2.5 to the paho client below: it offers neither
        # acknowledging by hand, nor the reason code of a PUBACK (a broker refuses a publish there and nowhere
        # else), nor a close that never waits; and it watches for writing what may be closed by then.
        self._paho = client._client  # noqa: SLF001
        self._paho.manual_ack_set(on=True)
        self._paho.on_publish = self._on_puback
        # What a CONNACK says of the broker's limits is heard here only; aiomqtt hears it afterwards, as ever.
        self._largest_packet = math.inf
        self._heard_connack: Any = self._paho.on_connect
        self._paho.on_connect = self._on_connack
        self._loop = asyncio.get_running_loop()
        self._paho.on_socket_register_write = self._on_register_write

    async def publish(self, message: Message, qos: int) -> None:
        """Publish and return after the PUBACK.

        Text in the properties loses its control characters. Raises Unavailable when no PUBACK comes or the broker
        cannot take it now, PublishRefused when it never will, Refused(`topic`) for a topic that MQTT does not allow,
        Refused(`too_large`) for a packet larger than the broker takes: it would end the connection, again and again.
        """
        _check_topic(message.topic)
        properties = _publish_properties(message)
        packed: bytes = properties.pack()  # type: ignore[no-untyped-call]
        size = _FIXED_BYTES + len(message.topic.encode()) + len(packed) + len(message.payload)
        if size > self._largest_packet:
            problem = f"{size} bytes to {message.topic!r} are more than the MQTT broker takes: {self._largest_packet}"
            raise Refused("too_large", problem, "Raise the broker's max_packet_size.")
        info = self._paho.publish(message.topic, message.payload, qos, message.retain, properties)
        if info.rc != MQTT_ERR_SUCCESS:
            raise self._unavailable(f"cannot publish to {message.topic!r}: {error_string(info.rc)}")
        if qos == 0:
            return
        puback: asyncio.Future[ReasonCode] = asyncio.get_running_loop().create_future()
        self._pubacks[info.mid] = puback
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                reason = await puback
        except TimeoutError:
            raise self._unavailable(f"did not confirm a publish to {message.topic!r}") from None
        finally:
            del self._pubacks[info.mid]
        if reason.is_failure:
            text = f"the MQTT broker at {self._address} refused a publish to {message.topic!r}: {reason}"
            kind = PublishRefused if reason.value in _NEVER else Unavailable
            raise kind(text, "Check the broker's access rules for this client.")

    async def subscribe(self, topic_filter: str) -> str | None:
        """Subscribe at QoS 1; give the broker's reason when it refuses, else None.

        Retained messages come only if the broker did not have the subscription yet.
        """
        return await self._subscribe(topic_filter, SubscribeOptions(1, retainHandling=_RETAINED_WHEN_NEW))

    async def follow(self, topic_filter: str) -> str | None:
        """Subscribe as `subscribe` does; what the broker retains comes each time."""
        return await self._subscribe(topic_filter, SubscribeOptions(1, retainHandling=_RETAINED_ALWAYS))

    async def ask(self, topic: str) -> None:
        """Subscribe to have what the broker retains, also by a session that was broken off when it had asked before.

        It comes at QoS 0, so that what we have not acknowledged yet does not hold it up. Raises ReadRefused.
        """
        if refusal := await self._subscribe(topic, SubscribeOptions(0, retainHandling=_RETAINED_ALWAYS)):
            raise self.read_refused(topic, refusal)

    def read_refused(self, topic: str, reason: str) -> ReadRefused:
        """Say that the broker keeps from us what is on a topic."""
        text = f"the MQTT broker at {self._address} does not let us read {topic!r}: {reason}"
        return ReadRefused(text, "Check the broker's access rules for this client.")

    async def _subscribe(self, topic_filter: str, options: SubscribeOptions) -> str | None:
        with self._confirmed(f"the subscription to {topic_filter!r}"):
            # Not aiomqtt's own timeout: on Python 3.11 its `wait_for` loses a cancellation that meets the answer.
            async with asyncio.timeout(ANSWER_SECONDS):
                reasons = await self._client.subscribe(topic_filter, options=options, timeout=math.inf)
        refusals = [str(reason) for reason in reasons if isinstance(reason, ReasonCode) and reason.is_failure]
        return refusals[0] if refusals else None

    async def unsubscribe(self, topic_filter: str) -> None:
        """Unsubscribe; raises Unavailable when the broker does not confirm."""
        with self._confirmed(f"the end of the subscription to {topic_filter!r}"):
            async with asyncio.timeout(ANSWER_SECONDS):
                await self._client.unsubscribe(topic_filter, timeout=math.inf)

    @contextmanager
    def _confirmed(self, what: str) -> Iterator[None]:
        try:
            yield
        except TimeoutError:
            raise self._unavailable(f"did not confirm {what}") from None
        except aiomqtt.MqttError as error:
            raise self._unavailable(f"did not confirm {what}: {error}") from None

    async def messages(self) -> AsyncIterator[ReceivedMessage]:
        """Give what arrives until the connection is lost; then raise Unavailable with the reason."""
        try:
            async for message in self._client.messages:
                yield ReceivedMessage(_message(message), message.mid if message.qos else 0)
        except aiomqtt.MqttError as error:
            raise self._unavailable(f"is gone: {error.__cause__ or error}") from None

    def acknowledge(self, packet_id: int) -> bool:
        """Send the PUBACK of a packet that came on this connection; False when it cannot leave any more."""
        # After a DISCONNECT packet paho has no socket, yet stays "connected" and queues acknowledgements.
        connected = self._paho.is_connected() and self._paho.socket() is not None
        return connected and self._paho.ack(packet_id, 1) == MQTT_ERR_SUCCESS

    async def close(self) -> None:
        """Say goodbye and close, without waiting; who waits for a PUBACK gets Unavailable."""
        # aiomqtt registers the socket for writing in the next turn of the loop; without that turn it would
        # register a descriptor that is closed by then, or worse, given to somebody else. From here on paho
        # writes at once.
        self._paho.on_socket_register_write = None
        await asyncio.sleep(0)
        self._paho.disconnect()
        unwritable = self._paho.socket()
        if unwritable is not None:
            loop = asyncio.get_running_loop()
            loop.remove_reader(unwritable)
            loop.remove_writer(unwritable)
            unwritable.close()
        for puback in self._pubacks.values():
            if not puback.done():
                puback.set_exception(self._unavailable("is gone"))

    def _on_connack(self, client: object, userdata: object, flags: object, reason: object, properties: object) -> None:
        self._largest_packet = getattr(properties, "MaximumPacketSize", math.inf)
        self._heard_connack(client, userdata, flags, reason, properties)

    def _on_puback(
        self, _client: object, _userdata: object, packet_id: int, reason: ReasonCode, _properties: object
    ) -> None:
        puback = self._pubacks.get(packet_id)
        if puback is not None and not puback.done():
            puback.set_result(reason)

    def _on_register_write(self, _client: object, _userdata: object, written: SocketLike) -> None:
        # paho may call this from the thread in which it connects.
        self._loop.call_soon_threadsafe(self._watch_writing, written)

    def _watch_writing(self, written: SocketLike) -> None:
        """Write when there is room again, unless the socket was closed meanwhile: its number may be another's now."""
        if written.fileno() < 0:
            return
        try:
            self._loop.add_writer(written.fileno(), self._paho.loop_write)
        except RuntimeError:
            # uvloop has given up a socket that was reset: who writes hears of it.
            self._paho.loop_write()

    def _unavailable(self, what: str, advice: str = "") -> Unavailable:
        return Unavailable(f"the MQTT broker at {self._address} {what}", advice)


@asynccontextmanager
async def connect(broker: Broker) -> AsyncIterator[Connection]:
    """Connect once, taking up the session the broker kept; raises Unavailable with host, port and reason."""
    client = aiomqtt.Client(
        broker.host,
        broker.port,
        identifier=broker.client_id,
        username=broker.username or None,
        password=broker.password or None,
        protocol=aiomqtt.ProtocolVersion.V5,
        clean_start=False,
        keepalive=KEEPALIVE_SECONDS,
        timeout=ANSWER_SECONDS,
        properties=_connect_properties(broker),
        tls_context=broker.tls,
        will=_will(broker.will),
        # A command of a few hundred bytes must not wait for the acknowledgement of the one before (Nagle).
        socket_options=[(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)],
    )
    connection = Connection(client, broker.address)
    try:
        try:
            # Not `async with`: its exit waits for the broker, and a broker that is silent would turn a
            # cancellation into an MqttError there. `close` does what is needed at once.
            await client.__aenter__()
        except aiomqtt.MqttError as error:
            message = f"cannot connect to the MQTT broker at {broker.address}: {error}"
            raise Unavailable(
                message, "Is the broker running, are mqtt.url, username and password right, does its certificate hold?"
            ) from None
        if client._client.socket() is None:  # noqa: SLF001 - a DISCONNECT beside the CONNACK, which aiomqtt misses
            raise Unavailable(f"the MQTT broker at {broker.address} accepted the connection and ended it at once")
        yield connection
    finally:
        await connection.close()


def _will(message: Message | None) -> aiomqtt.Will | None:
    return None if message is None else aiomqtt.Will(message.topic, message.payload, qos=1, retain=message.retain)


def _connect_properties(broker: Broker) -> Properties:
    properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
    properties.SessionExpiryInterval = broker.session_expiry
    properties.ReceiveMaximum = RECEIVE_MAXIMUM
    properties.MaximumPacketSize = broker.largest_packet
    return properties


def _publish_properties(message: Message) -> Properties:
    properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
    if message.content_type is not None:
        properties.ContentType = _text(message.content_type)
    if message.user_properties:
        properties.UserProperty = [(_text(k), _text(v)) for k, v in message.user_properties.items()]
    if message.response_topic is not None:
        _check_topic(message.response_topic)
        properties.ResponseTopic = message.response_topic
    if message.correlation_data is not None:
        properties.CorrelationData = message.correlation_data
    if message.expiry is not None:
        properties.MessageExpiryInterval = message.expiry
    return properties


def _check_topic(topic: str) -> None:
    if not topic or _FORBIDDEN.search(topic) or set(topic) & set("+#") or len(topic.encode()) > _LONGEST_STRING:
        raise Refused("topic", f"{topic[:200]!r} is no topic to publish to", "Avoid +, # and control characters.")


def _text(text: str) -> str:
    """Make a string that MQTT carries; four bytes is the most that a character takes."""
    return _FORBIDDEN.sub(" ", text[: _LONGEST_STRING // 4])


def _message(message: aiomqtt.Message) -> Message:
    properties: Any = message.properties
    return Message(
        topic=str(message.topic),
        payload=bytes(message.payload),
        content_type=getattr(properties, "ContentType", None),
        user_properties=dict(getattr(properties, "UserProperty", ())),
        response_topic=getattr(properties, "ResponseTopic", None),
        correlation_data=getattr(properties, "CorrelationData", None),
        expiry=getattr(properties, "MessageExpiryInterval", None),
        retain=message.retain,
        received_at=now_ms(),
    )


def _read_string(buffer: bytes, limit: int) -> tuple[str, int]:
    """Read a string property and give it with the number of bytes it took."""
    end = _LENGTH_BYTES + int.from_bytes(buffer[:_LENGTH_BYTES], "big")
    if end > limit:
        raise MalformedPacket("a string is longer than its packet")
    return buffer[_LENGTH_BYTES:end].decode(errors="replace"), end


# paho 2.2 ends the connection over a U+FEFF in a string, which MQTT 5 allows. The broker would send the
# message again on every connection that follows: one such message, from anybody, would cut us off for good.
paho.mqtt.properties.readUTF = _read_string
