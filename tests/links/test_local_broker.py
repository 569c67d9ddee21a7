"""Tests of the local broker: start, restart, invalid configuration, missing mosquitto."""

import asyncio

import pytest

from edge.config import MqttSettings
from edge.foundation.errors import Unavailable
from edge.links.local_broker import find_mosquitto, open_broker
from edge.links.mqtt import Message, open_session
from tests import local_broker
from tests.conftest import WaitUntil


async def test_broker_accepts_connections_while_open_and_leaves_no_files() -> None:
    async with open_broker() as broker:
        directory = broker.directory
        assert (directory / "mosquitto.conf").is_file()
        _, writer = await asyncio.open_connection("127.0.0.1", broker.port)
        writer.close()
    assert not directory.exists()
    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.1", broker.port)


async def test_broker_keeps_retained_messages_across_a_restart(unique: str, wait_until: WaitUntil) -> None:
    messages: list[Message] = []

    async def note(message: Message) -> None:
        messages.append(message)

    async with open_broker() as broker:
        async with open_session(MqttSettings(url=broker.url), unique) as session:
            await session.publish(unique, b"kept", retain=True)
        await broker.stop()
        await broker.start()
        async with open_session(MqttSettings(url=broker.url), unique) as session:
            await session.subscribe(unique, note)
            await wait_until(lambda: messages)
    assert messages == [Message(unique, b"kept", retain=True)]


async def test_invalid_configuration_is_reported_with_the_mosquitto_message() -> None:
    with pytest.raises(Unavailable, match="Unknown configuration variable"):
        async with local_broker.open_broker("no_such_setting true"):
            pytest.fail("it started")


def test_missing_mosquitto_is_reported_with_the_package_to_install() -> None:
    with pytest.raises(Unavailable, match="not installed") as failure:
        find_mosquitto("mosquitto-that-is-not-there")
    assert "apt-get install mosquitto" in failure.value.advice
