"""Marks and undelivered results are counted; other keys with a lifetime are not."""

import asyncio

from edge.store import dedupe, undelivered
from edge.store.bounded_counts import MarkCounter
from edge.store.bounds import BoundedCount, CountLimits
from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.server_check import read_state


async def test_marks_and_undelivered_results_are_counted(store: Store) -> None:
    limits = CountLimits(("station-1", "station-2"), marks=1000, undelivered=10)
    for number in range(600):
        await store.commit(dedupe.mark(store.keys, "mes", str(number), "null", 60_000))
    await store.commit(dedupe.mark_transaction(store.keys, "station-1", "T1", "null", 60_000, "mes"))
    await store.commit(dedupe.bury(store.keys, "J1", 1, 60_000))
    await store.commit(undelivered.add(store.keys, "station-2", "J1", 1))
    counts = (await read_state(store, limits, MarkCounter(1000))).counts
    assert counts.marks == BoundedCount(602, 1000)
    assert counts.undelivered == {"station-1": BoundedCount(0, 10), "station-2": BoundedCount(1, 10)}


async def test_other_keys_with_a_lifetime_are_not_counted_as_marks(store: Store) -> None:
    """Flows, sessions and other programs have such keys too: orders must not be refused for them."""
    tasks = (store.keys.node_task("flow", number, "node") for number in range(1500))
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
