"""A connection to the broker by paho, as equipment and MES of other vendors have; messages are kept in a list."""

import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from paho.mqtt.client import Client, MQTTMessage, MQTTv5
from paho.mqtt.enums import CallbackAPIVersion
from paho.mqtt.packettypes import PacketTypes
from paho.mqtt.properties import Properties
from paho.mqtt.subscribeoptions import SubscribeOptions


@dataclass(frozen=True)
class Received:
    """One message."""

    topic: str
    payload: bytes
    attributes: dict[str, str]
    response_topic: str | None
    correlation_data: bytes | None
    retained: bool
    at: float = field(default_factory=time.monotonic)

    @property
    def data(self) -> Any:
        """The payload, which is JSON."""
        return json.loads(self.payload)


class MqttClient:
    """A client whose messages can be waited for; `on_message` is called for each, on the client's own thread."""

    def __init__(
        self, port: int, client_id: str, *, session_expiry: int = 0, login: tuple[str, str] | None = None
    ) -> None:
        self.received: list[Received] = []
        self.disconnects = 0
        self.on_message: Callable[[Received], None] = lambda _: None
        self._changed = threading.Condition()
        self._filters: dict[str, SubscribeOptions] = {}
        self._client = Client(CallbackAPIVersion.VERSION2, client_id, protocol=MQTTv5, reconnect_on_failure=True)
        self._client.reconnect_delay_set(1, 1)
        if login:
            self._client.username_pw_set(*login)
        self._client.on_connect = self._on_connect
        self._client.on_disconnect = self._on_disconnect
        self._client.on_message = self._on_message
        self._client.on_subscribe = lambda *_: self._note()
        self._properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        self._properties.SessionExpiryInterval = session_expiry
        self._port = port
        self.connected = False

    def connect(self) -> None:
        """Connect and wait for the CONNACK; from then on the client reconnects by itself."""
        self._client.connect("127.0.0.1", self._port, 20, clean_start=False, properties=self._properties)
        self._client.loop_start()
        self.wait(lambda: self.connected, "connected")

    def subscribe(self, topic_filter: str) -> None:
        """Subscribe at QoS 1, now and at every reconnect."""
        self._filters[topic_filter] = SubscribeOptions(qos=1)
        self._client.subscribe(topic_filter, options=self._filters[topic_filter])

    def publish(
        self,
        topic: str,
        payload: bytes | str,
        attributes: dict[str, str],
        *,
        qos: int = 1,
        retain: bool = False,
        response_topic: str | None = None,
        correlation_data: bytes | None = None,
        confirm: float | None = 10.0,
    ) -> None:
        """Publish; wait for the PUBACK up to `confirm` seconds."""
        properties = Properties(PacketTypes.PUBLISH)  # type: ignore[no-untyped-call]
        properties.ContentType = "application/json"
        properties.UserProperty = list(attributes.items())
        if response_topic is not None:
            properties.ResponseTopic = response_topic
        if correlation_data is not None:
            properties.CorrelationData = correlation_data
        info = self._client.publish(topic, payload, qos, retain, properties)
        if qos and confirm is not None:
            info.wait_for_publish(confirm)
            assert info.is_published(), f"no PUBACK for a message to {topic}"

    def wait(self, condition: Callable[[], object], what: str, deadline: float = 60.0) -> None:
        """Wait for a condition that messages make true; fail after `deadline` seconds."""
        with self._changed:
            assert self._changed.wait_for(condition, deadline), f"not within {deadline:g} s: {what}"

    def close(self) -> None:
        """Disconnect and stay away; the broker keeps the session as long as agreed."""
        self._client.disconnect()
        self._client.loop_stop()
        # paho leaves the sockets that wake its thread to the garbage collector.
        self._client._reset_sockets()  # noqa: SLF001
        self.connected = False

    def _on_connect(self, *_: object) -> None:
        for topic_filter, options in self._filters.items():
            self._client.subscribe(topic_filter, options=options)
        self.connected = True
        self._note()

    def _on_disconnect(self, *_: object) -> None:
        self.connected = False
        self.disconnects += 1
        self._note()

    def _on_message(self, _client: object, _userdata: object, message: MQTTMessage) -> None:
        properties = message.properties
        received = Received(
            topic=message.topic,
            payload=bytes(message.payload),
            attributes=dict(getattr(properties, "UserProperty", ())),
            response_topic=getattr(properties, "ResponseTopic", None),
            correlation_data=getattr(properties, "CorrelationData", None),
            retained=message.retain,
        )
        self.on_message(received)
        with self._changed:
            self.received.append(received)
            self._changed.notify_all()

    def _note(self) -> None:
        with self._changed:
            self._changed.notify_all()
