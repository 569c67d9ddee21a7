"""A flood of messages is bounded in memory and does not delay other work of the gateway."""

import asyncio
import contextlib
import resource
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from structlog.testing import capture_logs

from edge.config import MqttSettings
from edge.links.mqtt import Message, open_session
from edge.links.mqtt_connection import MOST_UNACKNOWLEDGED
from edge.links.mqtt_publish import encode_publish
from tests.conftest import WaitUntil
from tests.local_broker import OwnBroker

pytestmark = pytest.mark.slow

_FLOODER = """
import socket, sys
connect, packets = bytes.fromhex(sys.argv[2]), bytes.fromhex(sys.argv[3]) * 500
with socket.create_connection(("127.0.0.1", int(sys.argv[1]))) as line:
    line.sendall(connect)
    line.recv(100)
    while True:
        line.sendall(packets)
"""
_CONNECT = b"\x10\x0d\x00\x04MQTT\x05\x02\x00\x00\x00\x00\x00"


@asynccontextmanager
async def flood(port: int, topic: str) -> AsyncIterator[None]:
    """Publish messages of QoS 0 as fast as a socket takes them, from a process of its own."""
    packet = encode_publish(Message(topic, b"noise that is not an event", user_properties={"id": "1"}), 0)
    arguments = ("-c", _FLOODER, str(port), _CONNECT.hex(), packet.hex())
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments)
    try:
        yield
    finally:
        process.kill()
        await process.wait()


async def test_qos_0_flood_does_not_delay_other_calls_or_fill_memory(
    broker: OwnBroker, mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    """280,000 messages of QoS 0 took 1.5 GB and delayed good calls for 105 s: fault 22."""
    answered: set[bytes] = set()
    noise = 0

    async def handle_noise(_message: Message) -> None:
        nonlocal noise
        noise += 1
        await asyncio.sleep(0.001)

    async def handle_call(message: Message) -> None:
        if message.payload.startswith(b"call"):
            answered.add(message.payload)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with capture_logs() as logs:
        async with open_session(mqtt, unique) as session, open_session(mqtt, f"{unique}-mes") as mes:
            await session.subscribe(f"{unique}/noise/#", handle_noise)
            await session.subscribe(f"{unique}/calls", handle_call)
            async with flood(broker.port, f"{unique}/noise/a"), flood(broker.port, f"{unique}/calls"):
                await wait_until(lambda: noise > 200)
                for number in range(5):
                    call, asked = f"call {number}".encode(), time.monotonic()
                    while call not in answered:
                        # The broker drops a message while its queue for the session is full: the MES repeats its call.
                        await mes.publish(f"{unique}/calls", call)
                        with contextlib.suppress(AssertionError):
                            await wait_until(lambda call=call: call in answered, 1.0)
                        assert time.monotonic() - asked < 30
    grown_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert grown_kib < 40 * 1024
    dropped = [entry for entry in logs if entry["event"] == "mqtt message dropped"]
    assert 0 < len(dropped) < 20


async def test_large_qos_1_messages_are_postponed_and_not_lost(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    """The broker sent 1,020 events of 250 KB without our acknowledgement, all of them were kept: fault 22."""
    handled: list[int] = []
    resume = asyncio.Event()

    async def handle(message: Message) -> None:
        await resume.wait()
        handled.append(int(message.payload[:10]))

    with capture_logs() as logs:
        async with open_session(mqtt, unique) as session, open_session(mqtt, f"{unique}-tool") as tool:
            await session.subscribe(f"{unique}/events", handle)
            for number in range(60):
                await tool.publish(f"{unique}/events", b"%010d" % number + bytes(1_000_000))
            await wait_until(lambda: any(entry["event"] == "mqtt messages postponed" for entry in logs))
            resume.set()
            await wait_until(lambda: len(handled) >= 60)
    assert handled == list(range(60))
    postponed = [entry for entry in logs if entry["event"] == "mqtt messages postponed"]
    assert all(entry["bytes_unacknowledged"] <= MOST_UNACKNOWLEDGED for entry in postponed)
