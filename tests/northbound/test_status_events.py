"""Status events are published in order; a repetition carries the identical payload, and results reach the MES."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from edge.config import MqttSettings
from edge.links.mqtt import Message
from edge.model.event_types import STATUS_EVENT_TYPE
from edge.model.isa95 import IdCall
from edge.model.job_state import Cause
from edge.station.retention import Expiry, RetentionPolicy
from edge.store import jobs, undelivered
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.northbound.calling import SCOPE
from tests.northbound.test_publisher import Bench, opened_bench, order

FAR_FUTURE = 1 << 41


@pytest.fixture
async def bench(store: Store, mqtt: MqttSettings, unique: str) -> AsyncIterator[Bench]:
    async with opened_bench(store, mqtt, unique) as bench:
        yield bench


async def until_delivered(store: Store) -> None:
    """Wait until the result of J1 is recorded as delivered."""
    async with asyncio.timeout(60):
        while not ((job := await jobs.load(store, "J1")) and job.delivered_at):
            pass


def status_events(bench: Bench) -> list[Message]:
    return [message for message in bench.heard.messages if message.user_properties.get("type") == STATUS_EVENT_TYPE]


async def test_a_republished_event_carries_the_identical_payload(
    bench: Bench, store: Store, wait_until: WaitUntil
) -> None:
    async with bench.publishing():
        await bench.call(Cause.STORE, order("J1"))
        await bench.call(Cause.START, IdCall(job_order_id="J1"))
        await bench.all_events_published()
    # Changed by hand, so that no change is noted: a repetition would show it.
    job = await jobs.load(store, "J1")
    assert job
    changed = msgspec.structs.replace(job.order, priority=9)
    await store.execute("HSET", store.keys.joborder("J1"), "order", msgspec.json.encode(changed).decode())
    await store.execute("DEL", store.keys.publisher_cursors())
    async with bench.publishing():
        await wait_until(lambda: len(status_events(bench)) == 2)
    first, again = status_events(bench)
    assert first == again


async def test_result_with_a_subscriber_counts_as_delivered(bench: Bench, store: Store) -> None:
    bench.policy = RetentionPolicy(0, "delivery")
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await until_delivered(store)


async def test_result_is_kept_until_a_client_subscribes(bench: Bench, store: Store) -> None:
    bench.policy = RetentionPolicy(0, "delivery")
    # Topics below this prefix have no subscriber.
    bench.topics = msgspec.structs.replace(bench.topics, prefix=f"{bench.topics.prefix}-unheard")
    async with bench.publishing():
        await bench.store_and_abort("J1")
        await bench.all_published()
        job = await jobs.load(store, "J1")
        assert job
        assert job.delivered_at is None
        await Expiry(store, bench.policy).expire(job, FAR_FUTURE)
        assert await undelivered.oldest(store, SCOPE, 2) == ["J1"]
        await bench.session.subscribe(bench.topics.result("J1"), bench.heard.take)
        await until_delivered(store)
    assert await undelivered.count(store, SCOPE) == 0
