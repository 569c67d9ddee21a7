"""Work stays in its stream until it is acknowledged."""

from collections.abc import AsyncIterator

import pytest_asyncio

from edge.config import RedisSettings
from edge.store import work
from edge.store.client import Store
from edge.store.keys import GROUP
from edge.store.open_store import open_store
from edge.store.work import UnreadableEntry, Work, WorkKind

SCOPES = ("station-1", "station-2")


@pytest_asyncio.fixture
async def other(redis: RedisSettings) -> AsyncIterator[Store]:
    """The same store as another instance sees it."""
    async with open_store(redis, "other") as opened:
        yield opened


async def first_batch(store: Store) -> list[Work | UnreadableEntry]:
    async for batch in work.follow(store, SCOPES):
        return batch
    raise AssertionError


def job_ids(taken: list[Work | UnreadableEntry]) -> list[str]:
    return [item.job_id for item in taken if isinstance(item, Work)]


async def test_work_is_read_as_it_was_added(store: Store) -> None:
    await work.create_groups(store, SCOPES)
    await store.commit(work.add(store.keys, "station-1", WorkKind.SEND, "J 1:ü"))
    (taken,) = await first_batch(store)
    assert taken == Work(taken.entry_id, "station-1", WorkKind.SEND, "J 1:ü")


async def test_unreadable_work_is_returned_as_an_unreadable_entry(store: Store) -> None:
    await work.create_groups(store, SCOPES)
    key = store.keys.sfc_work("station-1")
    for entry in (("job_id", "J9"), ("job_id", "J9", "action", "dance", "scope", "station-1"), ("scope", "{")):
        await store.execute("XADD", key, "*", *entry)
    await store.commit(work.add(store.keys, "station-1", WorkKind.START_RECIPE, "J1"))
    *unreadable, readable = await first_batch(store)
    assert isinstance(readable, Work)
    assert [item.fields.get("job_id") for item in unreadable if isinstance(item, UnreadableEntry)] == ["J9", "J9", None]
    await store.execute("XTRIM", key, "MAXLEN", 0)
    left = await work.read_pending(store, SCOPES)
    assert {item.reason for item in left if isinstance(item, UnreadableEntry)} == {"it was removed from the stream"}


async def test_only_pending_work_of_another_gateway_is_claimed(store: Store, other: Store) -> None:
    await work.create_groups(store, SCOPES)
    for number in range(120):
        await store.commit(work.add(store.keys, SCOPES[number % 2], WorkKind.START_RECIPE, f"J{number}"))
    taken = [*await first_batch(other), *await first_batch(other)]
    assert len(taken) == 120
    await store.commit(work.add(store.keys, SCOPES[0], WorkKind.START_RECIPE, "new"))
    assert await work.claim_from(store, other.consumer, SCOPES[:1]) == 60
    assert job_ids(await work.read_pending(store, SCOPES)) == [f"J{number}" for number in range(0, 120, 2)]
    assert await work.claim_from(store, other.consumer, SCOPES) == 60
    assert await work.read_pending(other, SCOPES) == []
    assert job_ids(await first_batch(store)) == ["new"]


async def test_attempts_are_counted_across_gateways(store: Store, other: Store) -> None:
    await work.create_groups(store, SCOPES)
    await store.commit(work.add(store.keys, "station-1", WorkKind.START_RECIPE, "J1"))
    (taken,) = await first_batch(store)
    assert isinstance(taken, Work)
    assert [await work.count_attempt(store, taken) for _ in range(2)] == [1, 2]
    await work.claim_from(other, store.consumer, SCOPES)
    assert await work.count_attempt(other, taken) == 3
    await store.commit(work.acknowledge(store.keys, "station-1", [taken.entry_id]))
    assert await work.count_attempt(store, taken) == 1


async def test_missing_consumer_groups_are_created(store: Store) -> None:
    await store.execute("XGROUP", "CREATE", store.keys.sfc_work("station-2"), "somebody", "0", "MKSTREAM")
    for _ in range(2):
        await work.create_groups(store, SCOPES)
    for scope in SCOPES:
        groups = await store.execute("XINFO GROUPS", store.keys.sfc_work(scope))
        assert GROUP in {group["name"] for group in groups}


async def test_work_of_every_scope_is_taken_by_one_gateway_only(store: Store, other: Store) -> None:
    await work.create_groups(store, SCOPES)
    for scope in SCOPES:
        for number in range(3):
            entry = ("job_id", f"J{number}", "action", "start_recipe", "scope", scope)
            await store.execute("XADD", store.keys.sfc_work(scope), "*", *entry)
    taken = await first_batch(store)
    assert sorted((item.scope, item.job_id) for item in taken if isinstance(item, Work)) == [
        (scope, f"J{number}") for scope in SCOPES for number in range(3)
    ]
    assert await work.read_pending(other, SCOPES) == []


async def test_unacknowledged_work_stays_pending(store: Store, other: Store) -> None:
    await work.create_groups(store, SCOPES)
    for number in range(3):
        await store.commit(work.add(store.keys, "station-1", WorkKind.START_RECIPE, f"J{number}"))
    await first_batch(store)
    left = await work.read_pending(store, SCOPES)
    assert job_ids(left) == ["J0", "J1", "J2"]
    await store.commit(work.acknowledge(store.keys, "station-1", [left[1].entry_id]))
    assert job_ids(await work.read_pending(store, SCOPES)) == ["J0", "J2"]
    assert await work.read_pending(other, SCOPES) == []
    assert await store.execute("XLEN", store.keys.sfc_work("station-1")) == 2


async def test_ten_thousand_entries_are_acknowledged_in_one_commit(store: Store) -> None:
    key = store.keys.sfc_work("station-1")
    await work.create_groups(store, SCOPES)
    entry = ("job_id", "J", "action", "start_recipe", "scope", "station-1")
    await store.read([("XADD", key, "*", *entry) for _ in range(10_000)])
    ids = [str(value[0]) for value in await store.execute("XRANGE", key, "-", "+")]
    await store.execute("XREADGROUP", "GROUP", GROUP, store.consumer, "STREAMS", key, ">")
    await store.commit(work.acknowledge(store.keys, "station-1", ids))
    assert await store.execute("XLEN", key) == 0
    assert await work.read_pending(store, SCOPES) == []


def test_empty_acknowledgement_produces_no_command(store: Store) -> None:
    assert work.acknowledge(store.keys, "station-1", []).operations == ()
