"""The history of a run in the store: order, limit and removal."""

import pytest

from edge.sfc.history import StoredDecision
from edge.store import run_history
from edge.store.client import Store

START = 1_700_000_000_000


def record(number: int) -> StoredDecision:
    return StoredDecision(number, START + number, "tick", "0c")


async def test_records_are_read_in_their_order(store: Store) -> None:
    numbers = (1, 2, 7, 8, 40)
    for number in numbers:
        await store.commit(run_history.append(store.keys, "J1", record(number), START, 100))
    assert await run_history.load(store, "J1", START) == [record(number) for number in numbers]
    assert await run_history.load(store, "J2", START) == []


async def test_newest_records_are_read_without_the_others(store: Store) -> None:
    for number in range(1, 31):
        await store.commit(run_history.append(store.keys, "J1", record(number), START, 100))
    assert await run_history.load(store, "J1", START, 3) == [record(number) for number in (28, 29, 30)]


@pytest.mark.parametrize("most", [1, 10, 50])
async def test_history_never_exceeds_its_bound_and_loses_its_oldest_records(store: Store, most: int) -> None:
    for number in range(1, 151):
        await store.commit(run_history.append(store.keys, "J1", record(number), START, most))
        kept = await store.execute("XLEN", store.keys.sfc_history("J1"))
        assert min(number, most) * 9 // 10 <= kept <= most
    found = await run_history.load(store, "J1", START)
    assert [stored_decision.number for stored_decision in found] == list(range(151 - len(found), 151))


async def test_record_times_before_the_start_are_kept(store: Store) -> None:
    records = [StoredDecision(1, START, "start", "0c"), StoredDecision(2, START - 3_600_000, "tick", "0c")]
    for decision in records:
        await store.commit(run_history.append(store.keys, "J1", decision, START, 100))
    assert await run_history.load(store, "J1", START) == records
