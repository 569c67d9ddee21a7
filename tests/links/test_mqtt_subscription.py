import asyncio
import tracemalloc
from typing import cast

import pytest
from structlog.testing import capture_logs

from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_connection import Connection
from edge.links.mqtt_publish import encode_topic
from edge.links.mqtt_subscription import Delivery, Settle, Subscription, matches
from edge.links.receive_queue import FloodLimits

NOWHERE = cast("Connection", None)


class Handler:
    """A handler that fails as often as it has faults."""

    def __init__(self, *faults: Exception) -> None:
        self.faults = list(faults)
        self.handled: list[Message] = []
        self.poisoned: list[tuple[Message, Exception]] = []

    async def handle(self, message: Message) -> None:
        if self.faults:
            raise self.faults.pop(0)
        self.handled.append(message)

    async def keep(self, message: Message, error: Exception) -> None:
        self.poisoned.append((message, error))


def _subscription(handler: Handler) -> Subscription:
    return Subscription("a/#", handler.handle, handler.keep, Connection.subscribe)


async def test_handler_is_retried_while_a_resource_is_unavailable() -> None:
    handler = Handler(Unavailable("store"), Unavailable("store"))
    with capture_logs() as logs:
        subscription = Subscription("a/#", handler.handle, handler.keep, Connection.subscribe, (0.001, 0.001))
        await subscription.handle(Message("a/b"))
    assert handler.handled == [Message("a/b")]
    assert [entry["event"] for entry in logs] == ["mqtt message waits for its handler"]


async def test_message_with_a_handler_defect_is_stored_and_not_retried() -> None:
    defect = ValueError("defect")
    handler = Handler(defect)
    await _subscription(handler).handle(Message("a/b"))
    assert (handler.handled, handler.poisoned) == ([], [(Message("a/b"), defect)])


async def test_qos_0_is_bounded_by_topic_and_qos_1_is_not() -> None:
    subscription = _subscription(Handler())
    with capture_logs() as logs:
        for _ in range(100):
            subscription.put(Delivery(Message("a/noise"), 0, NOWHERE))
    for number in range(30):
        subscription.put(Delivery(Message("a/calls"), number + 1, NOWHERE))
    taken = [(await subscription.take()).message.topic for _ in range(FloodLimits().per_topic + 30)]
    assert taken == ["a/noise"] * FloodLimits().per_topic + ["a/calls"] * 30
    assert [entry["event"] for entry in logs] == ["mqtt message dropped"]
    subscription.put(Delivery(Message("a/noise"), 0, NOWHERE))
    assert (await subscription.take()).message.topic == "a/noise"


async def test_message_with_a_defect_is_finished_after_earlier_messages() -> None:
    event, finished = asyncio.Event(), list[str]()

    async def handle(message: Message) -> Settle:
        if message.topic == "a/defect":
            raise ValueError("defect")
        return wait_for_stored

    async def wait_for_stored() -> None:
        await event.wait()

    subscription = Subscription("a/#", handle, None, Connection.subscribe)
    for number, topic in enumerate(("a/1", "a/defect", "a/2"), 1):
        subscription.put(Delivery(Message(topic), number, NOWHERE))
    last = asyncio.Event()

    def finish(delivery: Delivery) -> None:
        finished.append(delivery.message.topic)
        if len(finished) == 3:
            last.set()

    run = subscription.run(finish)
    async with background_task(run, "subscription"), asyncio.timeout(30):
        for _ in range(20):
            await asyncio.sleep(0)
        assert finished == []
        event.set()
        await last.wait()
    assert finished == ["a/1", "a/defect", "a/2"]


async def test_messages_of_one_ordering_key_wait_for_each_other_only() -> None:
    may_go, handled, finished = asyncio.Event(), list[bytes](), list[int]()
    all_finished = asyncio.Event()

    async def handle(message: Message) -> None:
        if message.payload == b"first of a":
            await may_go.wait()
        handled.append(message.payload)
        if len(handled) == 2:
            may_go.set()

    def finish(delivery: Delivery) -> None:
        finished.append(delivery.packet_id)
        if len(finished) == 4:
            all_finished.set()

    subscription = Subscription("t", handle, None, Connection.subscribe, key=lambda item: item.payload.decode()[-1])
    for number, text in enumerate((b"first of a", b"second of a", b"first of b", b"second of b"), 1):
        subscription.put(Delivery(Message("t", text), number, NOWHERE))
    async with background_task(subscription.run(finish), "subscription"), asyncio.timeout(10):
        await all_finished.wait()
    assert handled == [b"first of b", b"second of b", b"first of a", b"second of a"]
    assert finished == [1, 2, 3, 4]


async def test_ordering_keys_take_no_more_messages_than_stay_unacknowledged() -> None:
    may_go, all_handled = asyncio.Event(), asyncio.Event()
    at_work = most_at_work = handled = 0

    async def handle(_: Message) -> None:
        nonlocal at_work, most_at_work, handled
        at_work += 1
        most_at_work = max(most_at_work, at_work)
        if at_work == 20:
            may_go.set()
        await may_go.wait()
        at_work -= 1
        handled += 1
        if handled == 200:
            all_handled.set()

    subscription = Subscription("t", handle, None, Connection.subscribe, key=lambda message: message.payload.decode())
    for number in range(200):
        subscription.put(Delivery(Message("t", b"%d" % number), number + 1, NOWHERE))
    async with background_task(subscription.run(lambda _: None), "subscription"), asyncio.timeout(10):
        await all_handled.wait()
    assert most_at_work <= 22


async def test_handler_cancelled_from_within_does_not_block_the_messages_behind() -> None:
    """The task of the subscription ended quietly: nothing behind was handled or acknowledged any more."""
    defects, finished, all_finished = list[str](), list[bytes](), asyncio.Event()

    async def handle(message: Message) -> None:
        if message.payload == b"bad":
            cancelled: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            cancelled.cancel()
            await cancelled

    async def keep(_: Message, error: Exception) -> None:
        defects.append(type(error).__name__)

    def finish(delivery: Delivery) -> None:
        finished.append(delivery.message.payload)
        if len(finished) == 2:
            all_finished.set()

    subscription = Subscription("t", handle, keep, Connection.subscribe)
    for number, payload in enumerate((b"bad", b"good"), 1):
        subscription.put(Delivery(Message("t", payload), number, NOWHERE))
    async with background_task(subscription.run(finish), "subscription"), asyncio.timeout(10):
        await all_finished.wait()
    assert (finished, defects) == ([b"bad", b"good"], ["CancelledWithinError"])


@pytest.mark.parametrize(
    ("topic_filter", "topic", "expected"),
    [
        ("a/b", "a/b", True),
        ("a/b", "a/c", False),
        ("a/+", "a/b", True),
        ("a/+", "a", False),
        ("a/+", "a/b/c", False),
        ("+/b", "a/b", True),
        ("+", "/a", False),
        ("+/+", "/a", True),
        ("a/#", "a", True),
        ("a/#", "a/b/c", True),
        ("a/#", "ab", False),
        ("#", "a/b", True),
        ("#", "$SYS/a", False),
        ("+/a", "$SYS/a", False),
        ("$SYS/#", "$SYS/a", True),
        ("$share/group/a/+", "a/b", True),
        ("a", "a/", False),
    ],
)
def test_topic_filters_match_as_in_the_standard(topic_filter: str, topic: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    assert matches(topic_filter, topic) is expected


def test_topics_that_others_choose_are_not_kept() -> None:
    """A response topic and the topic of a message can have 64 KiB each: caches by topic took up to 280 MB."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        for number in range(1_000):
            topic = f"answers/{number}/".ljust(60_000, "x")
            assert matches("answers/#", topic)
            assert not matches("commands", topic)
            assert encode_topic(topic)[:8] == b"answers/"
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert after - before < 1_000_000
