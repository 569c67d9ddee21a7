"""Marks are counted by sender, swept with their time, and dropped at once by a command."""

import asyncio

import pytest

from edge.store import dedupe, ended_jobs
from edge.store.bounds import BoundedCount, CountLimits
from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.dedupe import MarkCounter, MessageSender, SenderKind, caller, equipment_sender, parse_sender
from edge.store.server_check import read_state
from edge.store.server_time import server_time

WRENCH = equipment_sender("wrench")


async def _mark(store: Store, source: str, first: int, many: int, sender: MessageSender | None = None) -> None:
    for number in range(first, first + many):
        await store.commit(dedupe.mark(store.keys, source, str(number), "null", 60_000, sender))


async def test_marks_are_counted_by_sender_with_its_share(store: Store) -> None:
    await _mark(store, "/mes", 0, 3)
    await store.commit(dedupe.mark_transaction(store.keys, "station-1", "T1", "null", 60_000, "/mes"))
    await _mark(store, "/tool", 0, 2, WRENCH)
    counts = await dedupe.count_by_sender(store, 1000)
    assert counts.senders == {"calls:/mes": BoundedCount(4, 500), "events:wrench": BoundedCount(2, 250)}
    assert counts.events == BoundedCount(2, 500)
    assert counts.nearly_full == {}


async def test_sender_is_named_long_before_all_marks_are_used(store: Store) -> None:
    await _mark(store, "/tool", 0, 125, WRENCH)
    state = await read_state(store, CountLimits(marks=1000), MarkCounter())
    assert not state.counts.marks.is_nearly_full
    assert state.counts.by_sender.nearly_full == {"events:wrench": BoundedCount(125, 250)}


async def test_sender_without_a_mark_is_forgotten_by_the_sweep(store: Store) -> None:
    await _mark(store, "/tool", 0, 3, WRENCH)
    now = await server_time(store)
    await dedupe.sweep_marks(store, 60_000, now)
    assert (await dedupe.count_by_sender(store, 1000)).senders["events:wrench"].count == 3
    await dedupe.sweep_marks(store, 60_000, now + 61_000)
    assert (await dedupe.count_by_sender(store, 1000)).senders == {}
    assert not await store.execute("EXISTS", store.keys.marks_of(WRENCH.id), store.keys.mark_senders())


async def test_dropped_marks_are_gone_and_others_stay(store: Store) -> None:
    await _mark(store, "/tool", 0, 3, WRENCH)
    await _mark(store, "/mes", 0, 1)
    await store.commit(dedupe.mark_transaction(store.keys, "s", "t", "null", 60_000, "/mes"))
    assert await dedupe.drop_marks(store, WRENCH) == 3
    assert await dedupe.load_answer(store, "/tool", "0") is None
    assert await dedupe.load_answer(store, "/mes", "0") == "null"
    assert await dedupe.drop_marks(store, caller("/mes")) == 2
    assert await store.fetch(dedupe.query_transaction_answer(store.keys, "s", "t")) is None
    assert (await dedupe.count_by_sender(store, 1000)).senders == {}


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        ("events:wrench", WRENCH),
        ("calls:urn:mes:1", MessageSender(SenderKind.CALLS, "urn:mes:1")),
        ("calls:", MessageSender(SenderKind.CALLS, "")),
        ("wrench", None),
        ("other:wrench", None),
    ],
)
def test_sender_is_parsed_from_its_id(id: str, expected: MessageSender | None) -> None:
    assert parse_sender(id) == expected


def test_long_source_is_cut() -> None:
    assert len(caller("x" * 5000).name) == 200


async def test_marks_and_undelivered_results_are_counted(store: Store) -> None:
    limits = CountLimits(("station-1", "station-2"), marks=1000, undelivered=10)
    for number in range(600):
        await store.commit(dedupe.mark(store.keys, "mes", str(number), "null", 60_000))
    await store.commit(dedupe.mark_transaction(store.keys, "station-1", "T1", "null", 60_000, "mes"))
    await store.commit(dedupe.bury(store.keys, "J1", "s", 1, 60_000))
    await store.commit(ended_jobs.add_undelivered(store.keys, "station-2", "J1", 1))
    counts = (await read_state(store, limits, MarkCounter(1000))).counts
    assert counts.marks == BoundedCount(602, 1000)
    assert counts.undelivered == {"station-1": BoundedCount(0, 10), "station-2": BoundedCount(1, 10)}


async def test_other_keys_with_a_lifetime_are_not_counted_as_marks(store: Store) -> None:
    """Flows, sessions and other programs have such keys too: orders must not be refused for them."""
    tasks = (f"{store.keys.prefix}:node_tasks:flow_{number}_node" for number in range(1500))
    await store.commit(join(operation("SET", key, "{}", "PX", 60_000) for key in tasks))
    await store.commit(dedupe.mark(store.keys, "mes", "1", "null", 60_000))
    counts = (await read_state(store, CountLimits(marks=1000), MarkCounter(1000))).counts
    assert counts.marks == BoundedCount(1, 1000)


async def test_marks_are_counted_in_batches(store: Store) -> None:
    marks = (dedupe.mark(store.keys, "mes", str(number), "null", 60_000) for number in range(4000))
    await store.commit(join(marks))
    counter = MarkCounter(batches=1)
    found = [await counter.count(store)]
    assert found[0] < 4000
    async with asyncio.timeout(60):
        while found[-1] < 4000:
            found.append(await counter.count(store))
    assert found == sorted(found)
    # A new pass begins; until its end the last one holds.
    assert await counter.count(store) == 4000
