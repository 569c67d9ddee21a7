"""An MQTT 5 client that shares no code with ours: paho, in a thread of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

import paho.mqtt.client as paho
from paho.mqtt.enums import CallbackAPIVersion


@contextmanager
def plain_client(port: int, *, will_topic: str = "", will: bytes = b"") -> Iterator[paho.Client]:
    """Connect to a broker on this host; `will` is retained."""
    client = paho.Client(CallbackAPIVersion.VERSION2, protocol=paho.MQTTv5, reconnect_on_failure=False)
    if will_topic:
        client.will_set(will_topic, will, qos=1, retain=True)
    client.connect("127.0.0.1", port)
    client.loop_start()
    try:
        yield client
    finally:
        client.disconnect()
        client.loop_stop()
