"""The history of a run in the store: order, limit and removal."""

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


async def test_history_is_bounded_and_loses_its_oldest_records(store: Store) -> None:
    for number in range(1, 601):
        await store.commit(run_history.append(store.keys, "J1", record(number), START, 50))
    found = await run_history.load(store, "J1", START)
    assert 50 <= len(found) < 50 + 256
    assert [each.number for each in found] == list(range(601 - len(found), 601))


async def test_record_times_before_the_start_are_kept(store: Store) -> None:
    records = [StoredDecision(1, START, "start", "0c"), StoredDecision(2, START - 3_600_000, "tick", "0c")]
    for each in records:
        await store.commit(run_history.append(store.keys, "J1", each, START, 100))
    assert await run_history.load(store, "J1", START) == records
