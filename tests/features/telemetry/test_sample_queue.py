"""The queue of samples is bounded and appends each batch once, however often it is retried."""

import asyncio
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from edge.config import RedisSettings
from edge.features.telemetry.sample_queue import QueueLimits, SampleQueue
from edge.foundation.task_group import background_task
from edge.ports.batch import Batch, decode_batch
from edge.ports.sample_lines import Occurrence, Sample
from edge.ports.tag import TagDefinitions, parse_definitions
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.open_store import open_store
from edge.store.reads import entries
from tests.conftest import WaitUntil
from tests.features.telemetry.plant import BEGIN, TelemetryClock
from tests.store.losing_store import LosingStore, Loss
from tests.store.servers import own_server


async def batches(store: Store) -> list[Batch]:
    raw = await store.execute("XRANGE", store.keys.telemetry(), "-", "+")
    return [decode_batch(entry.fields)[0] for entry in entries(raw)]


def sample(number: int) -> Sample:
    return Sample(BEGIN + number, "t", number)


async def test_lines_are_appended_in_batches_in_order(store: Store, wait_until: WaitUntil) -> None:
    queue = SampleQueue(store, TelemetryClock(), QueueLimits(batch_size=4, interval_s=0.01))
    for number in range(10):
        queue.put(sample(number))
    async with background_task(queue.run(), "queue"):
        await wait_until(lambda: queue.appended == 10, 30)
    found = await batches(store)
    assert [len(batch.lines) for batch in found] == [4, 4, 2]
    assert [batch.number for batch in found] == [1, 2, 3]
    assert [line.at - BEGIN for batch in found for line in batch.lines] == list(range(10))
    assert {batch.arrived_at for batch in found} == {BEGIN}


async def test_full_queue_keeps_the_newest_lines_and_counts_the_dropped(store: Store, wait_until: WaitUntil) -> None:
    queue = SampleQueue(store, TelemetryClock(), QueueLimits(size=5, interval_s=0))
    for number in range(12):
        queue.put(sample(number))
    assert (queue.waiting, queue.dropped) == (5, 7)
    async with background_task(queue.run(), "queue"):
        await wait_until(lambda: queue.appended == 5, 30)
    assert [line.at - BEGIN for batch in await batches(store) for line in batch.lines] == [7, 8, 9, 10, 11]


async def test_queue_is_settled_when_all_lines_are_stored_or_dropped(store: Store, wait_until: WaitUntil) -> None:
    queue = SampleQueue(store, TelemetryClock(), QueueLimits(size=5, interval_s=0))
    for number in range(12):
        queue.put(sample(number))
    settled = asyncio.ensure_future(queue.settle(queue.received))
    await asyncio.sleep(0)
    assert (queue.received, settled.done()) == (12, False)
    async with background_task(queue.run(), "queue"):
        await wait_until(settled.done, 30)
    assert (queue.appended, queue.dropped) == (5, 7)


async def test_full_batch_does_not_wait_for_its_interval(store: Store, wait_until: WaitUntil) -> None:
    queue = SampleQueue(store, TelemetryClock(), QueueLimits(batch_size=4, interval_s=3600))
    async with background_task(queue.run(), "queue"):
        queue.put(sample(0))
        await asyncio.sleep(0)
        for number in range(1, 5):
            queue.put(sample(number))
        await wait_until(lambda: queue.appended == 4, 30)
    assert queue.waiting == 1


async def test_sample_after_an_idle_time_is_appended_at_once(store: Store, wait_until: WaitUntil) -> None:
    """Each sample waited for 100 ms, so that an alarm from MQTT was at its client after 150 ms at best."""
    queue = SampleQueue(store, TelemetryClock(), QueueLimits(interval_s=3600))
    async with background_task(queue.run(), "queue"):
        queue.put(sample(0))
        await wait_until(lambda: queue.appended == 1, 30)
    assert queue.waiting == 0


@pytest.mark.parametrize(
    ("bad", "is_tag"),
    [(Sample(1, "", 1), False), (Sample(1, "t", {"a": 1}), True), (Occurrence(1, "x" * 300, None, None), False)],
)
async def test_refused_sample_makes_its_tag_uncertain(store: Store, bad: Sample | Occurrence, *, is_tag: bool) -> None:
    queue = SampleQueue(store, TelemetryClock())
    queue.put(bad)
    assert (queue.waiting, queue.refused) == (is_tag, 1)


async def test_batch_is_retried_with_the_same_number_after_a_lost_reply(store: Store, wait_until: WaitUntil) -> None:
    queue = SampleQueue(LosingStore(store, [Loss.REPLY] * 2), TelemetryClock(), QueueLimits(interval_s=0, retry_s=0.01))
    queue.put(sample(1))
    async with background_task(queue.run(), "queue"):
        await wait_until(lambda: queue.appended == 1, 30)
        queue.put(sample(2))
        await wait_until(lambda: queue.appended == 2, 30)
    assert [batch.number for batch in await batches(store)] == [1, 1, 1, 2]


async def test_log_names_the_queue_whose_store_is_unavailable(store: Store, wait_until: WaitUntil) -> None:
    queue = SampleQueue(
        LosingStore(store, [Loss.REPLY] * 2),
        TelemetryClock(),
        QueueLimits(interval_s=0, retry_s=0.01),
        task="volatile sample queue",
    )
    queue.put(sample(1))
    with capture_logs() as logs:
        async with background_task(queue.run(), "queue"):
            await wait_until(lambda: queue.appended == 1, 30)
    tasks = [entry["task"] for entry in logs if entry["event"] == "store unavailable, retrying"]
    assert tasks == ["volatile sample queue"]


async def test_full_sample_store_recovers_by_dropping_its_older_half(tmp_path: Path) -> None:
    limits = QueueLimits(retry_s=0.01, interval_s=0)
    async with (
        own_server(tmp_path, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction") as server,
        open_store(RedisSettings(url=server.url), "gw-1") as store,
    ):
        queue = SampleQueue(store, TelemetryClock(), limits)
        async with background_task(queue.run(), "queue"):
            for number in range(5_000):
                queue.put(Sample(BEGIN + number, "t", f"{number} {'x' * 900}"))
                if number % 100 == 99:
                    await asyncio.wait_for(queue.settle(queue.received), 30)
        assert (queue.appended, queue.dropped) == (5_000, 0)
        found = await batches(store)
        assert len(found) < 50
        newest = found[-1].lines[-1]
        assert isinstance(newest, Sample)
        assert newest.value.startswith("4999 ")


async def test_sample_that_violates_its_definition_is_refused(store: Store) -> None:
    definitions, faults = parse_definitions([{"tag": "t", "type": "number", "high": 9}])
    assert faults == ()
    queue = SampleQueue(store, lambda: 0, judge=TagDefinitions(definitions).judge)
    for value in (1, "text", 10):
        queue.put(Sample(0, "t", value))
    # The refused one makes its tag uncertain.
    assert (queue.refused, queue.waiting) == (1, 3)


async def test_backlog_of_a_stall_is_appended_without_a_pause(store: Store) -> None:
    """A queue that was full once let 1,800 samples pass in a second, and never recovered."""
    queue = SampleQueue(store, TelemetryClock())
    for number in range(8_000):
        queue.put(sample(number))
    async with background_task(queue.run(), "queue"), asyncio.timeout(3.5):
        await queue.settle(8_000)
    assert (queue.appended, queue.dropped) == (8_000, 0)


async def test_backlog_waits_in_the_queue_while_the_rules_are_behind(store: Store, wait_until: WaitUntil) -> None:
    """Entries that no rule has read left the stream without a count."""
    limits = QueueLimits(size=50, batch_size=10, interval_s=0, look_s=0.001, most_batches=1, stream_length=100)
    queue = SampleQueue(store, TelemetryClock(), limits)
    await telemetry.create_group(store)
    await telemetry.take_new(store, 1)
    async with background_task(queue.run(), "queue"):
        for number in range(1_000):
            queue.put(sample(number))
            if number % 50 == 49:
                await wait_until(lambda: queue.waiting < 10 or queue.appended >= 100, 30)
        assert queue.appended + queue.dropped + queue.waiting == 1_000
        assert (await telemetry.read_unread(store)).entries <= 12
        async with asyncio.timeout(30):
            while queue.waiting:
                await telemetry.take_new(store, 10)
            await queue.settle(1_000)
    assert queue.appended + queue.dropped == 1_000


async def test_message_that_a_session_drops_is_counted(store: Store) -> None:
    queue = SampleQueue(store, TelemetryClock())
    queue.note_drop()
    assert queue.dropped == 1


@pytest.mark.parametrize(("source", "corrected"), [(-60_000, -60_000), (-60_001, 0), (1_000, 1_000), (1_001, 0)])
async def test_implausible_source_clock_is_corrected_at_arrival(
    store: Store, wait_until: WaitUntil, source: int, corrected: int
) -> None:
    queue = SampleQueue(store, TelemetryClock(), QueueLimits(interval_s=0))
    queue.put(Sample(BEGIN + source, "t", 1))
    async with background_task(queue.run(), "queue"):
        await wait_until(lambda: queue.appended == 1, 30)
    (batch,) = await batches(store)
    assert [line.at - BEGIN for line in batch.lines] == [corrected]
    # A later reader, also after an outage, corrects nothing again.
    assert batch.is_placed


def test_tag_whose_type_changes_is_logged_once(store: Store) -> None:
    queue = SampleQueue(store, TelemetryClock())
    with capture_logs() as logs:
        for value in (1, 2.5, None, "on", 3):
            queue.put(Sample(BEGIN, "t", value))
    assert [(entry["event"], entry["before"], entry["now"]) for entry in logs] == [
        ("sample type changed", "number", "text")
    ]
