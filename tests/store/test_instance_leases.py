"""A gateway name belongs to one process at a time; gateways without a lease are found."""

import asyncio
import itertools

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.store import instance_leases, keys, work
from edge.store.client import Store
from edge.store.instance_leases import load_identity
from edge.store.lease_watch import LeaseWatch, parse_lease
from edge.store.open_store import open_store

SCOPES = ("s1", "s2")


async def test_lease_has_one_holder_and_no_expiry(store: Store) -> None:
    key = store.keys.lease_instance("edge")
    assert await instance_leases.acquire(store, "edge", "me") is None
    value = await store.execute("GET", key)
    assert parse_lease(value).token == "me"
    assert await instance_leases.acquire(store, "edge", "you") == value
    assert await store.execute("PTTL", key) == -1
    assert await instance_leases.renew(store, "edge", "you", "") is None
    await instance_leases.release(store, "edge", "you")
    assert await instance_leases.renew(store, "edge", "me", value) is not None
    await instance_leases.release(store, "edge", "me")
    assert await instance_leases.renew(store, "edge", "me", value) is None
    assert await instance_leases.acquire(store, "edge", "you") is None


async def test_acquiring_an_own_lease_again_succeeds(store: Store) -> None:
    """As when the reply of the first time was lost."""
    for _ in range(2):
        assert await instance_leases.acquire(store, "edge", "me") is None


async def test_lease_is_renewed_after_a_lost_reply_to_the_last_renewal(store: Store) -> None:
    await instance_leases.acquire(store, "edge", "me")
    before = await store.execute("GET", store.keys.lease_instance("edge"))
    assert (renewed := await instance_leases.renew(store, "edge", "me", before)) not in {None, before}
    assert await instance_leases.renew(store, "edge", "me", before) not in {None, before, renewed}


async def test_takeover_fails_when_the_holder_renewed_meanwhile(store: Store) -> None:
    await instance_leases.acquire(store, "edge", "slow")
    seen = await store.execute("GET", store.keys.lease_instance("edge"))
    renewed = await instance_leases.renew(store, "edge", "slow", seen)
    assert await instance_leases.acquire(store, "edge", "me", seen) == renewed
    assert await instance_leases.acquire(store, "edge", "me", renewed) is None
    holder = await instance_leases.acquire(store, "edge", "you", renewed)
    assert holder is not None
    assert parse_lease(holder).token == "me"


async def test_lease_of_the_former_form_is_left_to_its_expiry(store: Store) -> None:
    """An older gateway on the same store: its token has no counter, and it renews the expiry only."""
    seconds = itertools.count(100)
    store.lease_watch = LeaseWatch(lambda: next(seconds))
    key = store.keys.lease_instance("older")
    await store.execute("SET", key, "4f1c pid:[4026531836] 812 4b1e", "PX", 60_000)
    await instance_leases.register(store, SCOPES, "older")
    for _ in range(8):
        assert (await instance_leases.read_membership(store, SCOPES, "me")).gone == {}
    assert await instance_leases.acquire(store, "older", "me") == "4f1c pid:[4026531836] 812 4b1e"
    await store.execute("DEL", key)
    assert (await instance_leases.read_membership(store, SCOPES, "me")).gone == {"older": None}


async def test_registered_gateway_is_gone_four_seconds_after_its_last_renewal(store: Store) -> None:
    seconds = itertools.count(100)
    store.lease_watch = LeaseWatch(lambda: next(seconds))
    await instance_leases.acquire(store, "edge", "me")
    await instance_leases.register(store, SCOPES, "edge")
    await instance_leases.acquire(store, "other", "you")
    await instance_leases.register(store, SCOPES[:1], "other")
    value = await store.execute("GET", store.keys.lease_instance("other"))
    for _ in range(4):
        membership = await instance_leases.read_membership(store, SCOPES, "me")
        assert (membership.mine, membership.gone) == (await store.execute("GET", store.keys.lease_instance("edge")), {})
        assert membership.members == {"s1": {"edge", "other"}, "s2": {"edge"}}
    assert (await instance_leases.read_membership(store, SCOPES, "me")).gone == {"other": value}
    await work.create_groups(store, SCOPES)
    await instance_leases.unregister(store, SCOPES, "other")
    await store.execute("DEL", store.keys.lease_instance("edge"))
    membership = await instance_leases.read_membership(store, SCOPES, "me")
    assert (membership.mine, membership.gone) == (None, {})


async def test_partly_failed_unregistration_keeps_the_gateway_registered(store: Store) -> None:
    await instance_leases.register(store, SCOPES, "other")
    await work.create_groups(store, SCOPES)
    await store.execute("XGROUP DESTROY", store.keys.sfc_work("s2"), keys.GROUP)
    with pytest.raises(Unavailable):
        await instance_leases.unregister(store, SCOPES, "other")
    assert (await instance_leases.read_membership(store, SCOPES, "me")).members == {"s1": {"other"}, "s2": {"other"}}


async def test_publisher_role_passes_on_after_release_or_end_of_the_lease(redis: RedisSettings, store: Store) -> None:
    await instance_leases.acquire(store, "edge", "me")
    assert await instance_leases.become_publisher(store, "s1", None, None)
    seen = await store.execute("GET", store.keys.lease_instance("edge"))
    async with open_store(redis, "other") as other:
        renewed = await instance_leases.renew(store, "edge", "me", seen)
        assert not await instance_leases.become_publisher(other, "s1", None, None)
        assert not await instance_leases.become_publisher(other, "s1", "edge", seen), "it has renewed its lease"
        assert not await instance_leases.become_publisher(other, "s1", "edge", None)
        assert await instance_leases.become_publisher(other, "s2", None, None)
        assert await instance_leases.become_publisher(other, "s1", "edge", renewed)
        assert not await instance_leases.become_publisher(store, "s1", "edge", renewed)
        publishers = (await instance_leases.read_membership(other, SCOPES, "you")).publishers
        assert publishers == {"s1": "other", "s2": "other"}
        await instance_leases.release_publisher(other, SCOPES)
        assert await instance_leases.become_publisher(store, "s1", None, None)


async def test_server_of_a_gateway_without_lease_is_left_out(store: Store) -> None:
    for name in ("a", "b"):
        await store.commit(instance_leases.put_opcua_server(store.keys, name, f"server of {name}"))
    assert await instance_leases.load_opcua_servers(store) == {}
    await instance_leases.acquire(store, "a", "token")
    assert await instance_leases.load_opcua_servers(store) == {"a": "server of a"}
    await store.commit(instance_leases.remove_opcua_server(store.keys, "a"))
    assert await instance_leases.load_opcua_servers(store) == {}


async def test_all_gateways_of_a_store_read_one_identity(store: Store) -> None:
    found = await asyncio.gather(*(load_identity(store) for _ in range(8)))
    assert len(set(found)) == 1
    assert len(found[0]) == 36
