"""The lease of equipment in the store: guarded by its text, and by the lease of the instance that it is taken from."""

from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.features.openprotocol import lease_store as equipment_leases
from edge.features.openprotocol.lease_store import EquipmentLeases, LeaseView, leases_at, text_of
from edge.foundation.errors import Unavailable
from edge.store import instance_leases
from edge.store.open_store import open_store
from tests.equipment.contract import WORK

PLACE = "192.168.1.30:4545"
NOTHING = LeaseView()


@pytest_asyncio.fixture
async def first(redis: RedisSettings) -> AsyncIterator[EquipmentLeases]:
    async with open_store(redis, "first") as store:
        await instance_leases.acquire(store, "first", "token")
        yield leases_at(store, ["station-1"], PLACE)


@pytest_asyncio.fixture
async def second(redis: RedisSettings) -> AsyncIterator[EquipmentLeases]:
    async with open_store(redis, "second") as store:
        await instance_leases.acquire(store, "second", "token")
        yield leases_at(store, ["station-1"], PLACE)


def serving(leases: EquipmentLeases, *scopes: str) -> EquipmentLeases:
    return replace(leases, scopes=frozenset(scopes))


async def connect(leases: EquipmentLeases) -> str:
    """Take the free lease and connect; return what is written then."""
    assert await equipment_leases.take(leases, await equipment_leases.load(leases))
    connected = leases.holder(is_connected=True)
    assert await equipment_leases.update(leases, text_of(leases.holder()), connected)
    return text_of(connected)


async def pass_on(leases: EquipmentLeases) -> bool:
    return await equipment_leases.pass_on(leases, await equipment_leases.load(leases), WORK)


async def passed_count(leases: EquipmentLeases) -> int:
    return int(await leases.store.execute("LLEN", leases.passed("first")))


async def test_free_lease_is_taken_once(first: EquipmentLeases, second: EquipmentLeases) -> None:
    assert await equipment_leases.load(first) == NOTHING
    assert await equipment_leases.take(first, NOTHING)
    assert not await equipment_leases.take(second, NOTHING)
    assert (await equipment_leases.load(second)).holder == first.holder()


async def test_lease_of_a_gateway_that_works_again_is_not_taken(
    first: EquipmentLeases, second: EquipmentLeases
) -> None:
    assert await equipment_leases.take(first, NOTHING)
    await instance_leases.release(first.store, "first", "token")
    lease_view = await equipment_leases.load(second)
    assert (lease_view.holder, [name for name, _ in lease_view.ended]) == (None, ["first"])
    await instance_leases.acquire(first.store, "first", "token")
    assert not await equipment_leases.take(second, lease_view)


async def test_connection_drops_what_was_passed_on_before(first: EquipmentLeases, second: EquipmentLeases) -> None:
    """It begins with the open commands of the runs."""
    held = await connect(first)
    lease_view = await equipment_leases.load(second)
    assert await equipment_leases.pass_on(second, lease_view, WORK)
    assert await equipment_leases.update(first, held, first.holder())
    assert await equipment_leases.first_passed(first, 1) is None
    assert not await equipment_leases.pass_on(second, lease_view, WORK)


async def test_passed_command_stays_until_it_was_taken(first: EquipmentLeases, second: EquipmentLeases) -> None:
    held = await connect(first)
    assert await pass_on(second)
    found = [await equipment_leases.first_passed(first, 1) for _ in range(2)]
    assert found == [msgspec.json.encode(WORK).decode()] * 2
    assert await equipment_leases.remove_passed(first, held, found[0])
    assert await equipment_leases.first_passed(first, 1) is None


async def test_command_that_is_passed_again_and_again_waits_once(
    first: EquipmentLeases, second: EquipmentLeases
) -> None:
    await connect(first)
    for _ in range(5):
        assert await pass_on(second)
    assert await passed_count(first) == 1


async def test_former_holder_removes_nothing_of_the_next_one(first: EquipmentLeases, second: EquipmentLeases) -> None:
    held = await connect(first)
    assert await equipment_leases.take(second, await equipment_leases.load(second))
    assert not await equipment_leases.remove_passed(first, held, None)


@pytest.mark.parametrize("scopes", [("station-1", "station-2"), ("station-0", "station-1")])
async def test_gateways_with_one_common_scope_share_one_lease(
    first: EquipmentLeases, second: EquipmentLeases, scopes: tuple[str, ...]
) -> None:
    """The lease had the name of the first scope of each: both connected."""
    other = serving(second, *scopes)
    await connect(first)
    lease_view = await equipment_leases.load(other)
    assert lease_view.holder == first.holder(is_connected=True)


async def test_gateways_without_a_common_scope_have_a_lease_each(
    first: EquipmentLeases, second: EquipmentLeases
) -> None:
    other = serving(second, "station-2")
    await connect(first)
    await connect(other)
    assert (await equipment_leases.load(first)).holder is None


async def test_unreadable_lease_of_a_gateway_at_work_is_not_taken(
    first: EquipmentLeases, second: EquipmentLeases
) -> None:
    await first.store.execute("HSET", first.key, "gateway:first", "somebody")
    with pytest.raises(Unavailable, match="the lease of gateway first at"):
        await equipment_leases.load(second)
    await instance_leases.release(first.store, "first", "token")
    assert await equipment_leases.take(second, await equipment_leases.load(second))


async def test_released_lease_is_free_and_that_of_another_stays(
    first: EquipmentLeases, second: EquipmentLeases
) -> None:
    held = await connect(first)
    await equipment_leases.release(second, held)
    assert (await equipment_leases.load(second)).holder == first.holder(is_connected=True)
    await equipment_leases.release(first, held)
    assert (await equipment_leases.load(second)).holder is None
