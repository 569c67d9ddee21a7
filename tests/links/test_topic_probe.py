"""A retained message can be read repeatedly; a forbidden topic is distinguished from an empty one."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from edge.config import MqttSettings
from edge.foundation.errors import Unavailable
from edge.links.mqtt import Message, open_session
from edge.links.mqtt_connection import ReadRefused
from tests.conftest import WaitUntil
from tests.local_broker import open_broker
from tests.northbound.access_rules import allowing, refusing_subscriptions


async def test_retained_message_can_be_read_repeatedly(mqtt: MqttSettings, unique: str) -> None:
    async with open_session(mqtt, unique) as session:
        assert await session.read_retained(f"{unique}/r", 0.05) is None
        for payload in (b"1", b"2"):
            await session.publish(f"{unique}/r", payload, retain=True)
            message = await session.read_retained(f"{unique}/r")
            assert message
            assert message.payload == payload
        await session.publish(f"{unique}/r", retain=True)
        assert await session.read_retained(f"{unique}/r", 0.05) is None


async def test_session_lost_after_its_request_gets_the_retained_message(mqtt: MqttSettings, unique: str) -> None:
    heard = asyncio.Queue[Message]()
    async with open_session(mqtt, unique) as died:
        await died.subscribe(f"{unique}/r", heard.put)
        await died.publish(f"{unique}/r", b"1", retain=True)
        await heard.get()
        await died.publish(f"{unique}/other")
    async with open_session(mqtt, unique) as session:
        assert await session.read_retained(f"{unique}/r")


async def test_read_of_a_retained_message_without_a_connection_fails(unique: str, wait_until: WaitUntil) -> None:
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        assert session.connection_count == 1
        await broker.stop()
        await wait_until(lambda: not session.connected)
        with pytest.raises(Unavailable, match="not connected"):
            await session.read_retained(f"{unique}/r")
        await broker.start()
        await wait_until(lambda: session.connection_count == 2)


async def test_forbidden_topic_differs_from_an_empty_one(tmp_path: Path, unique: str) -> None:
    async with (
        open_broker(*refusing_subscriptions(tmp_path, "+/kept")) as broker,
        open_session(MqttSettings(url=broker.url), unique) as session,
    ):
        await session.publish(f"{unique}/kept", b"1", retain=True)
        with pytest.raises(ReadRefused, match=r"does not let us read .*/kept'.*: Not authorized") as refused:
            await session.read_retained(f"{unique}/kept")
        assert "access rules" in refused.value.advice
        assert await session.read_retained(f"{unique}/other", 0.05) is None


async def test_granted_but_silent_subscription_is_detected(tmp_path: Path, unique: str) -> None:
    async with (
        open_broker(allowing(tmp_path, "write +/kept", "readwrite +/told", "read +/fixed")) as broker,
        open_session(MqttSettings(url=broker.url), unique) as session,
    ):
        for topic in (f"{unique}/kept", f"{unique}/told"):
            await session.publish(topic, b"1", retain=True)
        assert await session.read_retained(f"{unique}/kept", 0.05) is None
        for topic in ("kept", "fixed"):
            with pytest.raises(ReadRefused, match="does not come to us"):
                await session.check_readable(f"{unique}/{topic}", 0.1)
        await session.check_readable(f"{unique}/told")
        message = await session.read_retained(f"{unique}/told")
        assert message
        assert message.payload == b"1"


async def test_cancelled_read_of_a_retained_message_unsubscribes(mqtt: MqttSettings, unique: str) -> None:
    heard = asyncio.Queue[Message]()
    async with open_session(mqtt, unique, unclaimed_after=0.0) as session:
        await session.subscribe(f"{unique}/end", heard.put)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await session.read_retained(f"{unique}/r", 60.0)
        with capture_logs() as logs:
            await session.publish(f"{unique}/r", b"1")
            await session.publish(f"{unique}/end")
            await heard.get()
    assert logs == []
