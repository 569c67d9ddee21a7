"""Values are published to the broker; without a connection the node fails and no value is published."""

import asyncio

import pytest
from paho.mqtt.client import MQTTMessage

from edge.config import MqttSettings
from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import PublishMessage
from edge.features.flows.ports.broker import MessagePublisher
from edge.foundation.errors import Unavailable
from edge.links.mqtt import Message, MqttSession, keep_session, open_session
from tests.local_broker import OwnBroker
from tests.plain_mqtt import plain_client


@pytest.mark.parametrize(("value", "payload"), [({"mean": 3.2}, b'{"mean":3.2}'), ("text", b"text"), (None, b"null")])
async def test_value_is_published(
    broker: OwnBroker, mqtt: MqttSettings, unique: str, value: object, payload: bytes
) -> None:
    loop = asyncio.get_running_loop()
    received: asyncio.Queue[bytes] = asyncio.Queue()
    with plain_client(broker.port) as client:
        subscribed = asyncio.Event()

        def confirm(*_: object) -> None:
            loop.call_soon_threadsafe(subscribed.set)

        client.on_subscribe = confirm

        def receive(_client: object, _data: object, message: MQTTMessage) -> None:
            loop.call_soon_threadsafe(received.put_nowait, bytes(message.payload))

        client.on_message = receive
        client.subscribe(unique, 1)
        async with asyncio.timeout(60), open_session(mqtt, f"{unique}-flows") as session:
            await subscribed.wait()
            output = await MessagePublisher(session).publish(PublishMessage(unique, retain=False, value=value), "t")
            assert await received.get() == payload
    assert output == {"topic": unique, "bytes": len(payload)}


async def test_value_is_not_published_without_a_connection(unique: str) -> None:
    async with keep_session(MqttSettings(url="mqtt://127.0.0.1:1"), unique) as session:
        with pytest.raises(NodeError, match="nothing was published"):
            await MessagePublisher(session).publish(PublishMessage("x", retain=False, value=1), "t")


async def test_outcome_is_unknown_when_the_broker_does_not_confirm(mqtt: MqttSettings, unique: str) -> None:
    class Unconfirmed(MqttSession):
        connected = True

        async def send(self, message: Message, *, qos: int = 1) -> bool:
            raise Unavailable("the connection was lost")

    async with open_session(mqtt, unique) as session:
        session.__class__ = Unconfirmed
        with pytest.raises(OutcomeUnknownError, match="connection was lost"):
            await MessagePublisher(session).publish(PublishMessage("x", retain=False, value=1), "t")
