"""The MQTT session loses no message, handles each in order, and survives lost connections."""

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Awaitable
from pathlib import Path

import pytest

from edge.config import MqttSettings
from edge.foundation.errors import Unavailable
from edge.links.mqtt import Message, MqttSession, Settle, open_session
from tests.conftest import WaitUntil
from tests.local_broker import OwnBroker, open_broker
from tests.outside.servers import Broker, ended


class Gate:
    """A handler that notes what it got and holds each message until it is let through."""

    def __init__(self) -> None:
        self.begun: list[bytes] = []
        self.done: list[bytes] = []
        self.open = asyncio.Event()

    async def handle(self, message: Message) -> None:
        self.begun.append(message.payload)
        await self.open.wait()
        self.done.append(message.payload)


@pytest.fixture
async def sender(mqtt: MqttSettings, unique: str) -> AsyncIterator[MqttSession]:
    async with open_session(mqtt, f"{unique}-sender") as session:
        yield session


async def test_messages_of_one_subscription_are_handled_in_order(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    seen: list[bytes] = []

    async def handle(message: Message) -> None:
        await asyncio.sleep(0)
        seen.append(message.payload)

    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/#", handle)
        numbers = [str(number).encode() for number in range(300)]
        for number in numbers:
            await session.publish(f"{unique}/a", number)
        await wait_until(lambda: len(seen) == len(numbers))
    assert seen == numbers


async def test_message_arrives_with_all_its_properties(mqtt: MqttSettings, unique: str, wait_until: WaitUntil) -> None:
    messages: list[Message] = []

    async def handle(message: Message) -> None:
        messages.append(message)

    sent = Message(
        topic=f"{unique}/a",
        payload=b"\x00\xff",
        content_type="application/json",
        user_properties={"id": "1", "phase": "start"},
        response_topic=f"{unique}/answers",
        correlation_data=bytes(range(16)),
        expiry=60,
    )
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", handle)
        await session.send(sent)
        await wait_until(lambda: messages)
    assert messages == [sent]
    assert messages[0].expiry is not None


async def test_slow_subscription_does_not_delay_another(mqtt: MqttSettings, unique: str, wait_until: WaitUntil) -> None:
    slow, fast = Gate(), Gate()
    fast.open.set()
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/slow", slow.handle)
        await session.subscribe(f"{unique}/fast", fast.handle)
        await session.publish(f"{unique}/slow", b"1")
        await session.publish(f"{unique}/fast", b"2")
        await wait_until(lambda: fast.done)
        assert (slow.begun, slow.done) == ([b"1"], [])


async def test_unhandled_message_is_delivered_again_after_a_restart(
    mqtt: MqttSettings, unique: str, sender: MqttSession, wait_until: WaitUntil
) -> None:
    before, after = Gate(), Gate()
    after.open.set()
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", before.handle)
        await sender.publish(f"{unique}/a", b"1")
        await sender.publish(f"{unique}/a", b"2")
        await wait_until(lambda: before.begun)
    await sender.publish(f"{unique}/a", b"3")
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", after.handle)
        await wait_until(lambda: len(after.done) == 3)
    assert (before.done, after.done) == ([], [b"1", b"2", b"3"])


async def test_handled_message_is_not_delivered_again_after_a_restart(
    mqtt: MqttSettings, unique: str, sender: MqttSession, wait_until: WaitUntil
) -> None:
    before, after = Gate(), Gate()
    before.open.set()
    after.open.set()
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", before.handle)
        await sender.publish(f"{unique}/a", b"1")
        await wait_until(lambda: before.done)
        # This comes back only after the acknowledgement has left on the same connection.
        await session.publish(f"{unique}/other", b"")
    await sender.publish(f"{unique}/a", b"2")
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", after.handle)
        await wait_until(lambda: after.done)
    assert after.done == [b"2"]


async def test_message_is_acknowledged_after_its_handler_settled(
    mqtt: MqttSettings, unique: str, sender: MqttSession, wait_until: WaitUntil
) -> None:
    """The next messages are handled meanwhile; acknowledgements keep their order."""
    events, seen, again = [asyncio.Event() for _ in range(4)], [], []

    async def handle(message: Message) -> Settle:
        seen.append(message.payload)
        return _waiting_for(events[int(message.payload)])

    async def handle_again(message: Message) -> None:
        again.append(message.payload)

    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", handle)
        await session.subscribe(f"{unique}/other", handle_again)
        for number in range(4):
            await sender.publish(f"{unique}/a", str(number).encode())
        await wait_until(lambda: len(seen) == 4)
        events[0].set()
        events[2].set()
        # Its acknowledgement, and the one of the first message before it, are on their way when it comes back.
        await session.publish(f"{unique}/other", b"")
        await wait_until(lambda: again)
    again.clear()
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", handle_again)
        await wait_until(lambda: len(again) >= 3)
    assert again == [b"1", b"2", b"3"]


def _waiting_for(event: asyncio.Event) -> Settle:
    async def settle() -> None:
        await event.wait()

    return settle


async def test_messages_of_a_stored_session_wait_for_their_subscription(
    mqtt: MqttSettings, unique: str, sender: MqttSession, wait_until: WaitUntil
) -> None:
    first, second = Gate(), Gate()
    first.open.set()
    second.open.set()
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", first.handle)
        await session.subscribe(f"{unique}/b", second.handle)
    for topic, payload in (("a", b"1"), ("b", b"2"), ("a", b"3")):
        await sender.publish(f"{unique}/{topic}", payload)
    first.done.clear()
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/b", second.handle)
        await wait_until(lambda: second.done)
        await session.subscribe(f"{unique}/a", first.handle)
        await wait_until(lambda: len(first.done) == 2)
    assert (first.done, second.done) == ([b"1", b"3"], [b"2"])


async def test_message_without_a_subscription_is_dropped_after_a_timeout(
    mqtt: MqttSettings, unique: str, sender: MqttSession, wait_until: WaitUntil
) -> None:
    gate = Gate()
    gate.open.set()
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/former", gate.handle)
    await sender.publish(f"{unique}/former", b"1")
    async with open_session(mqtt, unique, unclaimed_after=0.0) as session:
        await session.subscribe(f"{unique}/a", gate.handle)
        await session.publish(f"{unique}/a", b"2")
        await wait_until(lambda: gate.done)
    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/former", gate.handle)
        await session.publish(f"{unique}/former", b"3")
        await wait_until(lambda: len(gate.done) == 2)
    assert gate.done == [b"2", b"3"]


async def test_session_reconnects_when_the_broker_returns(unique: str, wait_until: WaitUntil) -> None:
    gate = Gate()
    gate.open.set()
    changes: list[bool] = []
    async with (
        open_broker() as broker,
        open_session(MqttSettings(url=broker.url), unique, on_change=changes.append) as session,
    ):
        await session.subscribe(f"{unique}/a", gate.handle)
        await broker.stop()
        await wait_until(lambda: not session.connected)
        with pytest.raises(Unavailable, match="not connected"):
            await session.publish(f"{unique}/a", b"lost")
        await broker.start()
        await wait_until(lambda: session.connected)
        await session.publish(f"{unique}/a", b"1")
        await wait_until(lambda: gate.done)
    assert gate.done == [b"1"]
    assert changes == [True, False, True, False]


async def test_client_subscribes_again_after_the_broker_lost_the_session(unique: str, wait_until: WaitUntil) -> None:
    gate = Gate()
    gate.open.set()
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        await session.subscribe(f"{unique}/a", gate.handle)
        await broker.stop()
        broker.forget()
        await broker.start()
        await wait_until(lambda: session.connected)
        await session.publish(f"{unique}/a", b"1")
        await wait_until(lambda: gate.done)
    assert gate.done == [b"1"]


async def test_equal_message_after_a_lost_session_is_handled(unique: str, wait_until: WaitUntil) -> None:
    """The broker begins with the same packet id again: the message is not a repetition of the one that it lost."""
    gate = Gate()
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        await session.subscribe(f"{unique}/a", gate.handle)
        await session.publish(f"{unique}/a", b"constant")
        await wait_until(lambda: gate.begun)
        await broker.stop()
        broker.forget()
        await broker.start()
        await wait_until(lambda: session.connected)
        await session.publish(f"{unique}/a", b"constant")
        gate.open.set()
        await wait_until(lambda: len(gate.done) == 2)


async def test_message_repeated_during_its_handler_is_handled_once(unique: str, wait_until: WaitUntil) -> None:
    gate, later = Gate(), Gate()
    later.open.set()
    async with open_broker() as broker:
        settings = MqttSettings(url=broker.url)
        async with open_session(settings, unique) as session:
            await session.subscribe(f"{unique}/a", gate.handle)
            await session.publish(f"{unique}/a", b"1")
            await session.publish(f"{unique}/a", b"2")
            await wait_until(lambda: gate.begun)
            await broker.stop()
            await wait_until(lambda: not session.connected)
            await broker.start()
            await wait_until(lambda: session.connected)
            # What the broker sends again precedes this on the connection.
            await session.subscribe(f"{unique}/marker", later.handle)
            await session.publish(f"{unique}/marker", b"")
            await wait_until(lambda: later.done)
            assert gate.begun == [b"1"]
            gate.open.set()
            await wait_until(lambda: len(gate.done) == 2)
            await session.publish(f"{unique}/a", b"3")
            await wait_until(lambda: len(gate.done) == 3)
            # This comes back only after the acknowledgement has left on the same connection.
            await session.publish("other", b"")
        assert gate.done == [b"1", b"2", b"3"]
        async with open_session(settings, unique) as session:
            later.done.clear()
            await session.subscribe(f"{unique}/a", later.handle)
            await session.publish(f"{unique}/a", b"4")
            await wait_until(lambda: later.done)
        assert later.done == [b"4"]


async def test_message_handled_during_an_outage_is_acknowledged_later(unique: str, wait_until: WaitUntil) -> None:
    gate = Gate()
    async with open_broker() as broker, open_session(MqttSettings(url=broker.url), unique) as session:
        await session.subscribe(f"{unique}/a", gate.handle)
        await session.publish(f"{unique}/a", b"1")
        await wait_until(lambda: gate.begun)
        await broker.stop()
        await wait_until(lambda: not session.connected)
        gate.open.set()
        await wait_until(lambda: gate.done)
        await broker.start()
        await wait_until(lambda: session.connected)
        await session.publish(f"{unique}/a", b"2")
        await wait_until(lambda: len(gate.done) == 2)
    assert gate.begun == [b"1", b"2"]


async def test_handler_is_retried_before_later_messages(mqtt: MqttSettings, unique: str, wait_until: WaitUntil) -> None:
    calls: list[bytes] = []

    async def handle(message: Message) -> None:
        calls.append(message.payload)
        if len(calls) < 3:
            raise Unavailable("the store is away")

    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", handle)
        await session.publish(f"{unique}/a", b"1")
        await session.publish(f"{unique}/a", b"2")
        await wait_until(lambda: len(calls) == 4)
    assert calls == [b"1", b"1", b"1", b"2"]


async def test_message_with_a_failing_handler_does_not_block_others(
    mqtt: MqttSettings, unique: str, wait_until: WaitUntil
) -> None:
    seen: list[bytes] = []
    poison: list[tuple[bytes, str]] = []

    async def handle(message: Message) -> None:
        if message.payload == b"bad":
            raise KeyError("no such thing")
        seen.append(message.payload)

    async def set_aside(message: Message, error: Exception) -> None:
        poison.append((message.payload, type(error).__name__))
        raise ValueError("a defect in setting aside changes nothing")

    async with open_session(mqtt, unique) as session:
        await session.subscribe(f"{unique}/a", handle, on_poison=set_aside)
        await session.publish(f"{unique}/a", b"bad")
        await session.publish(f"{unique}/a", b"good")
        await wait_until(lambda: seen)
    assert (poison, seen) == ([(b"bad", "KeyError")], [b"good"])


async def test_open_without_a_broker_reports_the_address(unique: str) -> None:
    settings = MqttSettings(url="mqtt://127.0.0.1:9")
    with pytest.raises(Unavailable, match=r"127\.0\.0\.1:9.*refused") as failure:
        async with open_session(settings, unique, connect_timeout=1.0):
            pytest.fail("there is no broker")
    assert failure.value.advice


async def test_exception_of_the_caller_is_raised_unchanged(mqtt: MqttSettings, unique: str) -> None:
    with pytest.raises(ZeroDivisionError):
        async with open_session(mqtt, unique):
            raise ZeroDivisionError


async def test_publish_in_progress_fails_when_the_connection_is_lost(unique: str, broker: OwnBroker) -> None:
    """A relay that swallows what comes from the broker stands for a network that breaks in this moment."""
    upstream: list[asyncio.StreamWriter] = []
    silent = asyncio.Event()

    async def pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, mute: asyncio.Event) -> None:
        while data := await reader.read(65536):
            if not mute.is_set():
                writer.write(data)
        writer.close()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        broker_reader, broker_writer = await asyncio.open_connection("127.0.0.1", broker.port)
        upstream.append(broker_writer)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(pump(reader, broker_writer, asyncio.Event()))
            tasks.create_task(pump(broker_reader, writer, silent))

    async with await asyncio.start_server(relay, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with open_session(MqttSettings(url=f"mqtt://127.0.0.1:{port}"), unique) as session:
            silent.set()
            async with asyncio.TaskGroup() as tasks:
                publish = tasks.create_task(_failure(session.publish(f"{unique}/a", b"1")))
                await asyncio.sleep(0)
                upstream[0].close()
            assert "is gone" in publish.result().message


async def _failure(publish: Awaitable[object]) -> Unavailable:
    with pytest.raises(Unavailable) as failure:
        await publish
    return failure.value


async def test_pubacks_of_a_default_mosquitto_do_not_wait_for_the_kernel(tmp_path: Path, unique: str) -> None:
    """Without `set_tcp_nodelay` all PUBACKs but the first waited 40 ms: 300 changes of jobs a second."""
    broker, windows = Broker(tmp_path), list[float]()
    with ended(broker):
        broker.start()
        async with open_session(MqttSettings(url=f"mqtt://127.0.0.1:{broker.port}"), unique) as session:
            await session.wait_connected(10.0)
            for _ in range(40):
                began = time.perf_counter()
                await asyncio.gather(*(session.publish(f"{unique}/{number}", b"x") for number in range(16)))
                windows.append(time.perf_counter() - began)
    assert statistics.median(windows) < 0.02
