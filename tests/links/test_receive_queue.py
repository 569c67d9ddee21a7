import asyncio

from structlog.testing import capture_logs

from edge.links.cloudevent_mqtt import Message
from edge.links.mqtt_publish import PublishHead
from edge.links.receive_queue import FloodLimits, ReceivedMessage, ReceiveQueue


def _offer(queue: ReceiveQueue, topic: str, size: int = 10) -> bool:
    admitted = queue.admits(PublishHead(topic, 0, retain=False, end=0), size)
    if admitted:
        queue.put(ReceivedMessage(Message(topic, bytes(size)), 0))
    return admitted


def test_flood_on_one_topic_does_not_block_other_topics() -> None:
    queue = ReceiveQueue()
    with capture_logs() as logs:
        admitted = [_offer(queue, "noise") for _ in range(1000)]
    assert admitted.count(True) == FloodLimits().per_topic
    assert [entry["event"] for entry in logs] == ["mqtt message dropped"]
    assert _offer(queue, "quiet")


def test_many_topics_and_large_messages_are_bounded() -> None:
    queue = ReceiveQueue()
    assert sum(_offer(queue, str(number)) for number in range(10_000)) == 500
    queue = ReceiveQueue()
    assert sum(_offer(queue, str(number), 1_000_000) for number in range(100)) == 4


def test_taken_message_frees_its_place() -> None:
    queue = ReceiveQueue()
    for _ in range(3 * FloodLimits().per_topic):
        assert _offer(queue, "topic")
        assert queue.take().message.topic == "topic"
    assert not queue.waiting


async def test_wait_ends_with_a_message() -> None:
    queue = ReceiveQueue()
    waiting = asyncio.ensure_future(queue.wait())
    await asyncio.sleep(0)
    queue.put(ReceivedMessage(Message("t"), 1))
    await waiting


def test_each_dropped_message_is_reported() -> None:
    dropped = []
    queue = ReceiveQueue(FloodLimits(per_topic=3, received=5, on_drop=lambda: dropped.append(1)))
    assert [_offer(queue, "a") for _ in range(4)] == [True, True, True, False]
    assert [_offer(queue, "b") for _ in range(3)] == [True, True, False]
    assert len(dropped) == 2
