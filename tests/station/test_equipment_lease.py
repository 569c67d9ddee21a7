"""The lease of equipment: one of the gateways that share a scope connects, and the others pass their commands to it."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from edge.config import RedisSettings
from edge.errors import Unavailable
from edge.station.equipment import NotSent
from edge.station.equipment_lease import ConnectionWatch, EquipmentLease
from edge.store import equipment_leases, instance_leases
from edge.store.client import Store
from edge.store.equipment_leases import LeaseHolder, LeaseView
from edge.store.opening import open_store
from tests.conftest import WaitUntil
from tests.southbound.contract import WORK

PLACE = "192.168.1.30:4545"
LOOK_S = 0.02


@dataclass
class Gateways:
    """Two gateways of one store."""

    first: Store
    second: Store

    def lease(self, store: Store) -> EquipmentLease:
        return EquipmentLease(store, "station-1", PLACE, LOOK_S)


@pytest_asyncio.fixture
async def gateways(redis: RedisSettings) -> AsyncIterator[Gateways]:
    async with open_store(redis, "first") as first, open_store(redis, "second") as second:
        for store in (first, second):
            await instance_leases.acquire(store, store.consumer, "token")
        yield Gateways(first, second)


async def test_second_gateway_waits_for_the_first_to_release(wait_until: WaitUntil, gateways: Gateways) -> None:
    first, second = gateways.lease(gateways.first), gateways.lease(gateways.second)
    await first.acquire()
    await first.confirm()
    acquiring = asyncio.create_task(second.acquire())
    await wait_until(lambda: second.holder)
    assert second.holder == "first"
    await first.release()
    async with asyncio.timeout(10):
        await acquiring
    assert (second.holder, second.has_changed) == ("", True)


async def test_same_gateway_connects_again_with_what_it_knows(gateways: Gateways) -> None:
    lease = gateways.lease(gateways.first)
    await lease.acquire()
    assert lease.has_changed
    await lease.confirm()
    await lease.withdraw()
    await lease.acquire()
    assert not lease.has_changed


async def test_gateway_that_connects_after_another_knows_nothing(gateways: Gateways) -> None:
    first, second = gateways.lease(gateways.first), gateways.lease(gateways.second)
    await first.acquire()
    await first.release()
    await second.acquire()
    await second.release()
    await first.acquire()
    assert first.has_changed


async def test_lease_of_an_ended_gateway_is_taken(wait_until: WaitUntil, gateways: Gateways) -> None:
    first, second = gateways.lease(gateways.first), gateways.lease(gateways.second)
    await first.acquire()
    await first.confirm()
    acquiring = asyncio.create_task(second.acquire())
    await wait_until(lambda: second.holder)
    await instance_leases.release(gateways.first, "first", "token")
    async with asyncio.timeout(10):
        await acquiring
    with pytest.raises(Unavailable, match="another gateway connects"):
        await first.confirm()


async def test_gateway_that_lost_the_lease_disconnects(gateways: Gateways) -> None:
    lease = gateways.lease(gateways.first)
    await lease.acquire()
    await lease.confirm()
    taken = equipment_leases.text_of(LeaseHolder("second"))
    await gateways.first.execute("SET", gateways.first.keys.lease_equipment("station-1", PLACE), taken)
    with pytest.raises(Unavailable, match="another gateway connects"):
        await anext(lease.passed())
    with pytest.raises(Unavailable, match="another gateway connects"):
        await lease.confirm()


CONNECTED, AWAY = LeaseHolder("first", is_connected=True), LeaseHolder("first")


@pytest.mark.parametrize(
    ("holder", "seconds", "expected"),
    [(None, 3600.0, False), (CONNECTED, 3600.0, False), (AWAY, 9.9, False), (AWAY, 10.0, True)],
)
def test_holder_that_does_not_connect_in_time_cannot_connect(
    holder: LeaseHolder | None, seconds: float, *, expected: bool
) -> None:
    watch, seen = ConnectionWatch(), LeaseView(None if holder is None else "text", holder, is_at_work=True)
    looks = [watch.look(seen, tenth / 10) for tenth in range(int(seconds * 10) + 1)]
    assert (looks[-1], any(looks[:-1])) == (expected, False)


def test_holder_that_tries_again_or_was_not_looked_at_has_its_time_again() -> None:
    watch = ConnectionWatch()
    looks = [watch.look(LeaseView(f"text {second // 8}", AWAY), float(second)) for second in range(20)]
    looks += [watch.look(LeaseView("text 2", AWAY), 100.0 + second) for second in range(10)]
    assert not any(looks)


async def test_commands_are_passed_to_the_connected_gateway(wait_until: WaitUntil, gateways: Gateways) -> None:
    first, second = gateways.lease(gateways.first), gateways.lease(gateways.second)
    await first.acquire()
    acquiring = asyncio.create_task(second.acquire())
    await wait_until(lambda: second.holder)
    with pytest.raises(NotSent, match="gateway first connects"):
        await second.pass_on(WORK)
    await first.confirm()
    await second.pass_on(WORK)
    async with asyncio.timeout(10):
        assert await anext(first.passed()) == WORK
    acquiring.cancel()


async def test_commands_before_a_connection_are_dropped(gateways: Gateways) -> None:
    """The connection begins with the open commands of the runs."""
    first, second = gateways.lease(gateways.first), gateways.lease(gateways.second)
    await first.acquire()
    await first.confirm()
    await second.pass_on(WORK)
    await first.withdraw()
    await first.confirm()
    assert await gateways.first.execute("LLEN", gateways.first.keys.passed_commands("station-1", PLACE)) == 0
