"""The lease of equipment in the store: guarded by its text, and by the lease of the instance that it is taken from."""

from collections.abc import AsyncIterator

import pytest_asyncio

from edge.config import RedisSettings
from edge.store import equipment_leases, instance_leases
from edge.store.client import Store
from edge.store.equipment_leases import EquipmentKeys, LeaseHolder, LeaseView
from edge.store.opening import open_store
from tests.southbound.contract import WORK

PLACE = "192.168.1.30:4545"
NOTHING = LeaseView()
FIRST, SECOND = LeaseHolder("first"), LeaseHolder("second")


@pytest_asyncio.fixture
async def first(redis: RedisSettings) -> AsyncIterator[Store]:
    async with open_store(redis, "first") as store:
        await instance_leases.acquire(store, "first", "token")
        yield store


def keys(store: Store) -> EquipmentKeys:
    return equipment_leases.keys_of(store, "station-1", PLACE)


async def test_free_lease_is_taken_once(first: Store) -> None:
    assert await equipment_leases.load(first, keys(first)) == NOTHING
    assert await equipment_leases.take(first, keys(first), NOTHING, FIRST)
    assert not await equipment_leases.take(first, keys(first), NOTHING, SECOND)
    seen = await equipment_leases.load(first, keys(first))
    assert (seen.holder, seen.is_at_work) == (FIRST, True)


async def test_lease_of_a_gateway_that_works_again_is_not_taken(first: Store) -> None:
    await equipment_leases.take(first, keys(first), NOTHING, FIRST)
    await instance_leases.release(first, "first", "token")
    seen = await equipment_leases.load(first, keys(first))
    assert not seen.is_at_work
    await instance_leases.acquire(first, "first", "token")
    assert not await equipment_leases.take(first, keys(first), seen, SECOND)


async def test_connection_drops_what_was_passed_on_before(first: Store) -> None:
    """It begins with the open commands of the runs."""
    await equipment_leases.take(first, keys(first), NOTHING, FIRST)
    text = equipment_leases.text_of(FIRST)
    assert await equipment_leases.pass_on(first, keys(first), text, WORK)
    assert await equipment_leases.update(first, keys(first), text, LeaseHolder("first", is_connected=True))
    assert await equipment_leases.next_passed(first, keys(first), 1, type(WORK)) is None
    assert not await equipment_leases.pass_on(first, keys(first), text, WORK)


async def test_unreadable_lease_and_command_count_as_none(first: Store) -> None:
    await first.execute("SET", keys(first).lease, "somebody")
    await first.execute("RPUSH", keys(first).passed, "{}")
    seen = await equipment_leases.load(first, keys(first))
    assert seen == LeaseView("somebody")
    assert await equipment_leases.next_passed(first, keys(first), 1, type(WORK)) is None
    assert await equipment_leases.take(first, keys(first), seen, FIRST)


async def test_released_lease_is_free_and_that_of_another_stays(first: Store) -> None:
    await equipment_leases.take(first, keys(first), NOTHING, FIRST)
    await equipment_leases.release(first, keys(first), equipment_leases.text_of(SECOND))
    assert (await equipment_leases.load(first, keys(first))).holder == FIRST
    await equipment_leases.release(first, keys(first), equipment_leases.text_of(FIRST))
    assert await equipment_leases.load(first, keys(first)) == NOTHING
