"""The MQTT broker of the settings: its address, our user, certificates and keys."""

import ssl
import uuid
from collections.abc import Callable, Sequence
from urllib.parse import urlsplit

from msgspec import Struct

from edge.config import MqttSettings, password_of
from edge.foundation.errors import SettingsError
from edge.foundation.text import Text
from edge.links.cloudevent_mqtt import Message
from edge.links.receive_queue import FLOOD_LIMITS, FloodLimits

PORTS = {"mqtt": 1883, "mqtts": 8883}
MAXIMUM_PACKET_SIZE = 8 * 1024 * 1024
"""The broker drops a larger packet before it reaches us."""
RECEIVE_MAXIMUM = 20
"""Messages of QoS 1 that the broker may send without our acknowledgement: the bound of all our queues."""
ANSWER_SECONDS = 5.0


class Broker(Struct, frozen=True):
    """Address of the broker and our identity; the broker keeps our session for `session_expiry` seconds.

    It drops packets larger than `largest_packet` bytes, sends at most `receive_maximum` messages of QoS 1 without our
    acknowledgement, and publishes `will` when the connection ends without DISCONNECT; with `will_always` at any end.
    It has to confirm what we send within `answer_s` seconds. `clean_start` drops the session that it kept.
    Of the messages of QoS 0 `flood` may wait.
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
    receive_maximum: int = RECEIVE_MAXIMUM
    answer_s: float = ANSWER_SECONDS
    will_always: bool = False
    clean_start: bool = False
    flood: FloodLimits = FLOOD_LIMITS

    @property
    def address(self) -> str:
        """Host and port as a person writes them."""
        return f"{self.host}:{self.port}"


def is_online(retained: bytes | None) -> bool | None:
    """Return what the presence of equipment says; None for another message, or none."""
    return {b"online": True, b"offline": False}.get(retained or b"")


class BrokerSubscriber(Struct, frozen=True):
    """A part of the gateway that subscribes at a broker, as `edge doctor` tries it: topics and the other end."""

    subject: str | Text
    topics: Sequence[str]
    presence: str = ""
    """The topic of the presence; empty where there is none."""
    waiting: Text = Text.of("jobs wait for it")
    """What waits while the other end is offline."""
    is_online: Callable[[bytes | None], bool | None] = is_online
    """What the retained message of the presence says; None when it says neither."""


def broker_of(settings: MqttSettings, client_id: str, session_expiry: int) -> Broker:
    """Read the broker's address, certificates and keys. Raises SettingsError with the name of an unreadable file."""
    parts = urlsplit(settings.url)
    try:
        default_port = PORTS[parts.scheme]
        # An invalid host name fails here.
        host = (parts.hostname or ".").encode("idna").decode()
        port = parts.port or default_port
    except (KeyError, ValueError):
        problem = Text.of("mqtt.url: {url!r} is not mqtt://host:port or mqtts://host:port", url=settings.url)
        raise SettingsError([problem]) from None
    return Broker(
        host=host,
        port=port,
        client_id=client_id,
        session_expiry=session_expiry,
        username=settings.username,
        password=password_of(settings),
        tls=_tls_context(settings) if parts.scheme == "mqtts" else None,
    )


def address_of(settings: MqttSettings) -> str:
    """Return a broker's address without user and password."""
    return urlsplit(settings.url).netloc.rpartition("@")[2]


def diagnostic_broker(settings: MqttSettings) -> Broker:
    """Return a broker with a client id of its own and a session that ends with the connection. Raises SettingsError."""
    return broker_of(settings, f"edge-doctor-{uuid.uuid4().hex[:12]}", session_expiry=0)


def _tls_context(settings: MqttSettings) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=settings.ca_file or None)
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file or None)
    except OSError as error:
        files = ", ".join(filter(None, (settings.ca_file, settings.cert_file, settings.key_file)))
        problem = Text.of("mqtt: certificate or key cannot be loaded ({files}): {reason}", files=files, reason=error)
        raise SettingsError(
            [problem], "Check the paths, that the service may read them, and that they are PEM."
        ) from None
    return context
