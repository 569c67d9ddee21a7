"""The lease of equipment: one of the gateways that share a scope connects, and the others pass their commands to it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest
import pytest_asyncio
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.features.openprotocol import keys as openprotocol_keys
from edge.features.openprotocol import lease_store as equipment_leases
from edge.features.openprotocol.equipment_lease import ConnectionWatch, EquipmentLease
from edge.features.openprotocol.lease_store import LeaseHolder, LeaseView, leases_at
from edge.foundation.errors import Unavailable
from edge.foundation.ticks import next_tick
from edge.station.equipment import NotSent
from edge.store import instance_leases
from edge.store.client import Store
from edge.store.lease_watch import LIFETIME_S, OwnLease
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.equipment.contract import NEXT, SCOPES, WORK
from tests.store.servers import own_server, relay_to, until_served

PLACE = "192.168.1.30:4545"
LOOK_S = 0.02


@dataclass
class Gateways:
    """Two gateways of one store."""

    first: Store
    second: Store

    def lease(self, store: Store) -> EquipmentLease:
        return EquipmentLease(store, SCOPES, PLACE, LOOK_S)


async def wait_for_blocked(store: Store) -> None:
    """Wait until a command of another store is blocked."""
    async with asyncio.timeout(30):
        while " flags=b" not in await store.execute("CLIENT LIST"):
            await next_tick(LOOK_S)


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
    others = leases_at(gateways.second, SCOPES, PLACE)
    assert await equipment_leases.take(others, await equipment_leases.load(others))
    with pytest.raises(Unavailable, match="another gateway connects"):
        await anext(lease.passed())
    with pytest.raises(Unavailable, match="another gateway connects"):
        await lease.confirm()


AWAY = LeaseHolder("first", ("station-1",))
CONNECTED = replace(AWAY, is_connected=True)


@pytest.mark.parametrize(
    ("holder", "seconds", "expected"),
    [(None, 3600.0, False), (CONNECTED, 3600.0, False), (AWAY, 9.9, False), (AWAY, 10.0, True)],
)
def test_holder_that_does_not_connect_in_time_cannot_connect(
    holder: LeaseHolder | None, seconds: float, *, expected: bool
) -> None:
    watch, lease_view = ConnectionWatch(), LeaseView(text=None if holder is None else "text", holder=holder)
    looks = [watch.look(lease_view, tenth / 10) for tenth in range(int(seconds * 10) + 1)]
    assert (looks[-1], any(looks[:-1])) == (expected, False)


def test_holder_that_tries_again_or_was_not_looked_at_has_its_time_again() -> None:
    watch = ConnectionWatch()
    looks = [watch.look(LeaseView(text=f"text {second // 8}", holder=AWAY), float(second)) for second in range(20)]
    looks += [watch.look(LeaseView(text="text 2", holder=AWAY), 100.0 + second) for second in range(10)]
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
    assert (
        await gateways.first.execute("LLEN", openprotocol_keys.passed_commands(gateways.first.keys, "first", PLACE))
        == 0
    )


async def test_passed_command_survives_a_lost_reply_of_the_store(tmp_path: Path, redis: RedisSettings) -> None:
    """The command was removed from the list with the reply that was lost."""
    async with (
        relay_to(tmp_path, redis.url) as relay,
        open_store(RedisSettings(url=relay.url, prefix=redis.prefix), "first") as store,
        open_store(redis, "second") as other,
    ):
        lost: list[bytes] = []

        async def deliver(requests: bytes) -> bool:
            if b"BLMOVE" not in requests or lost:
                return True
            lost.append(requests)
            return False

        for item in (store, other):
            await instance_leases.acquire(item, item.consumer, "token")
        first, second = EquipmentLease(store, SCOPES, PLACE, LOOK_S), EquipmentLease(other, SCOPES, PLACE, LOOK_S)
        await first.acquire()
        await first.confirm()
        await second.pass_on(WORK)
        relay.deliver = deliver
        async with asyncio.timeout(30):
            assert await anext(first.passed()) == WORK
        assert lost


async def test_passed_command_is_removed_after_it_was_taken(gateways: Gateways) -> None:
    first, second = gateways.lease(gateways.first), gateways.lease(gateways.second)
    passed = openprotocol_keys.passed_commands(gateways.first.keys, "first", PLACE)
    await first.acquire()
    await first.confirm()
    for command in (WORK, NEXT):
        await second.pass_on(command)
    commands = first.passed()
    async with asyncio.timeout(30):
        assert await anext(commands) == WORK
        assert await gateways.first.execute("LLEN", passed) == 2
        assert await anext(commands) == NEXT
        assert await gateways.first.execute("LLEN", passed) == 1
    await commands.aclose()


async def test_unreadable_passed_command_is_reported_and_removed(gateways: Gateways) -> None:
    first, second = gateways.lease(gateways.first), gateways.lease(gateways.second)
    await first.acquire()
    await first.confirm()
    await gateways.first.execute("RPUSH", openprotocol_keys.passed_commands(gateways.first.keys, "first", PLACE), "{}")
    await second.pass_on(WORK)
    commands = first.passed()
    async with asyncio.timeout(30):
        assert [await anext(commands), await anext(commands)] == [None, WORK]
    await commands.aclose()


async def test_former_holder_takes_no_command_of_the_next_one(gateways: Gateways) -> None:
    """It waited at the list of the place, and took what was passed to the next holder."""
    first, second = gateways.lease(gateways.first), gateways.lease(gateways.second)
    await first.acquire()
    await first.confirm()
    waiting = asyncio.ensure_future(anext(first.passed()))
    others = leases_at(gateways.second, SCOPES, PLACE)
    await wait_for_blocked(gateways.second)
    assert await equipment_leases.take(others, await equipment_leases.load(others))
    await second.acquire()
    await second.confirm()
    await first.pass_on(WORK)
    async with asyncio.timeout(30):
        assert await anext(second.passed()) == WORK
        with pytest.raises(Unavailable, match="another gateway connects"):
            await waiting


async def test_command_of_a_scope_that_the_holder_lacks_is_not_sent(gateways: Gateways) -> None:
    first = gateways.lease(gateways.first)
    second = EquipmentLease(gateways.second, ["station-1", "station-2"], PLACE, LOOK_S)
    await first.acquire()
    await first.confirm()
    with pytest.raises(NotSent, match="does not serve scope station-2") as refused:
        await second.pass_on(replace(WORK, scope="station-2"))
    assert "[gateway] scopes" in refused.value.advice


async def test_unreadable_lease_is_not_a_free_one(gateways: Gateways) -> None:
    """It counted as free: two gateways connected."""
    lease = gateways.lease(gateways.second)
    await gateways.first.execute(
        "HSET", openprotocol_keys.lease_equipment(gateways.first.keys, PLACE), "gateway:first", "later"
    )
    with pytest.raises(Unavailable, match="cannot be read"):
        await lease.acquire()


async def test_passed_command_survives_a_kill_of_the_store(tmp_path: Path) -> None:
    async with own_server(tmp_path) as server:
        settings = RedisSettings(url=server.url)
        async with open_store(settings, "first") as store, open_store(settings, "second") as other:
            for element in (store, other):
                await instance_leases.acquire(element, element.consumer, "token")
            first, second = EquipmentLease(store, SCOPES, PLACE, LOOK_S), EquipmentLease(other, SCOPES, PLACE, LOOK_S)
            await first.acquire()
            await first.confirm()
            taking = asyncio.ensure_future(anext(first.passed()))
            await wait_for_blocked(other)
            server.freeze()
            passing = asyncio.ensure_future(second.pass_on(WORK))
            await server.kill()
            with suppress(Unavailable):
                await passing
            await server.start()
            await until_served(other)
            # As its sender does after an error: the same command waits once.
            await second.pass_on(WORK)
            async with asyncio.timeout(30):
                assert await taking == WORK


async def test_thawed_holder_begins_no_work_after_a_takeover(gateways: Gateways) -> None:
    """It looked only for passed commands: it began its own on the old connection, as the next holder did."""
    now = 0.0
    own = gateways.first.own_lease = OwnLease(lambda: now)
    lease = gateways.lease(gateways.first)
    value = await renewed(gateways.first)
    await lease.acquire()
    await lease.confirm()
    async with asyncio.timeout(10):
        await lease.ensure()
        await lease.refuse_if_lost()
        now += LIFETIME_S
        others = leases_at(gateways.second, SCOPES, PLACE)
        assert await equipment_leases.take(others, await equipment_leases.load(others))
        waiting = asyncio.ensure_future(lease.ensure())
        with pytest.raises(NotSent, match="another gateway connects"):
            await lease.refuse_if_lost()
        assert not waiting.done()
        assert await instance_leases.renew(gateways.first, "first", "token", value)
        assert own.is_certain
        with pytest.raises(NotSent, match="another gateway connects"):
            await waiting


async def test_thawed_holder_works_on_where_no_other_gateway_connects(gateways: Gateways) -> None:
    now = 0.0
    own = gateways.first.own_lease = OwnLease(lambda: now)
    lease = gateways.lease(gateways.first)
    value = await renewed(gateways.first)
    await lease.acquire()
    await lease.confirm()
    now += LIFETIME_S
    assert not own.is_certain
    async with asyncio.timeout(10):
        await lease.refuse_if_lost()
        await instance_leases.renew(gateways.first, "first", "token", value)
        await lease.ensure()


async def test_tool_is_disabled_while_the_store_does_not_answer(tmp_path: Path) -> None:
    """A lease that may be lost does not keep a tool enabled; work is begun only when it is certain."""
    async with own_server(tmp_path) as server, open_store(RedisSettings(url=server.url), "first") as store:
        await instance_leases.acquire(store, "first", "token")
        lease = EquipmentLease(store, SCOPES, PLACE, LOOK_S)
        await lease.acquire()
        await lease.confirm()
        store.own_lease.note_renewed(float("-inf"))
        server.freeze()
        beginning = asyncio.ensure_future(lease.ensure())
        async with asyncio.timeout(5):
            await lease.refuse_if_lost()
        assert not beginning.done()
        beginning.cancel()


async def renewed(store: Store) -> str:
    """Renew the lease of a store's consumer; return its value."""
    value = await store.execute("GET", store.keys.lease_instance(store.consumer))
    after = await instance_leases.renew(store, store.consumer, "token", value)
    assert after
    return after
