"""Sample streams are read from the last published position and then followed."""

import asyncio

from edge.features.sparkplug import sample_streams as sparkplug
from edge.features.sparkplug.sample_streams import NodeRecord, SampleBatch, SampleStreams
from edge.foundation.task_group import background_task
from edge.ports.sample_lines import Occurrence, Sample
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from tests.features.telemetry.plant import append


async def test_stored_and_new_samples_are_read_without_a_gap(store: Store) -> None:
    streams = SampleStreams({"samples": store}, lambda tag: tag != "unwanted")
    for number in range(25):
        await append(
            store, Sample(number, "a.x", number), Sample(number, "unwanted", 0), Occurrence(1, "o", None, None)
        )
    await store.execute("XADD", store.keys.telemetry(), "*", "garbage", "1")
    learned: list[Sample] = []
    await streams.read_up(learned.append)
    assert [sample.value for sample in learned] == list(range(25))
    sample_batches = [batch async for batch in streams.stored({"samples": "", "unknown": "1-0"})]
    assert [sample.value for batch in sample_batches for sample in batch.samples] == list(range(25))
    rest = [batch async for batch in streams.stored({"samples": sample_batches[22].position})]
    assert [sample.value for batch in rest for sample in batch.samples] == [23, 24]
    await append(store, Sample(25, "a.x", 25))
    await streams.read_up(learned.append)
    followed: asyncio.Queue[SampleBatch] = asyncio.Queue()
    async with background_task(streams.follow(followed.put), "streams"), asyncio.timeout(60):
        await append(store, Sample(26, "a.x", 26))
        batch = await followed.get()
    assert [sample.value for sample in (*learned, *batch.samples)] == list(range(27))
    assert streams.read["samples"] < batch.position


async def test_empty_stream_is_read(store: Store) -> None:
    streams = SampleStreams({"samples": store}, lambda _: True)
    await streams.read_up(lambda _: None)
    assert streams.read == {"samples": "0-0"}
    assert [batch async for batch in streams.stored({"samples": "0-0"})] == []


async def test_number_and_cursors_are_read_back(store: Store) -> None:
    assert await sparkplug.load(store) == NodeRecord(None, {})
    assert await store.commit(sparkplug.save_bd_seq(store.keys, 0, None)) == Committed()
    assert await store.commit(sparkplug.save_bd_seq(store.keys, 1, 0)) == Committed()
    await store.commit(sparkplug.save_cursor(store.keys, "samples", "5-0"))
    assert await sparkplug.load(store) == NodeRecord(1, {"samples": "5-0"})


async def test_sequence_number_is_taken_by_one_gateway_only(store: Store) -> None:
    await store.commit(sparkplug.save_bd_seq(store.keys, 0, None))
    assert isinstance(await store.commit(sparkplug.save_bd_seq(store.keys, 0, None)), Stale)
