"""A gateway name belongs to one process at a time; gateways without a lease are found."""

import pytest

from edge.config import RedisSettings
from edge.errors import Unavailable
from edge.store import instance_leases, keys, work
from edge.store.client import Store
from edge.store.opening import open_store

SCOPES = ("s1", "s2")


async def is_gone(store: Store, name: str) -> bool:
    return name in (await instance_leases.read_membership(store, SCOPES, "me")).gone


async def expire(store: Store, name: str) -> None:
    await store.execute("DEL", store.keys.lease_instance(name))


async def test_lease_has_one_holder_and_expires(store: Store) -> None:
    assert await instance_leases.acquire(store, "edge", "me") is None
    assert await instance_leases.acquire(store, "edge", "you") == "me"
    assert 0 < await store.execute("PTTL", store.keys.lease_instance("edge")) <= instance_leases.LIFETIME_MS
    assert not await instance_leases.renew(store, "edge", "you")
    await instance_leases.release(store, "edge", "you")
    assert await instance_leases.renew(store, "edge", "me")
    await instance_leases.release(store, "edge", "me")
    assert not await instance_leases.renew(store, "edge", "me")
    assert await instance_leases.acquire(store, "edge", "you") is None


async def test_acquiring_an_own_lease_again_succeeds(store: Store) -> None:
    """As when the reply of the first time was lost."""
    for _ in range(2):
        assert await instance_leases.acquire(store, "edge", "me") is None


async def test_lease_of_a_dead_gateway_is_taken_over_once(store: Store) -> None:
    await instance_leases.acquire(store, "edge", "dead")
    assert await instance_leases.take_over(store, "edge", "me", "dead")
    assert not await instance_leases.take_over(store, "edge", "you", "dead")


async def test_registered_gateway_without_lease_is_gone(store: Store) -> None:
    await instance_leases.acquire(store, "edge", "me")
    await instance_leases.register(store, SCOPES, "edge")
    await instance_leases.acquire(store, "other", "you")
    await instance_leases.register(store, SCOPES[:1], "other")
    seen = await instance_leases.read_membership(store, SCOPES, "me")
    assert (seen.mine, seen.gone) == (True, frozenset())
    assert seen.members == {"s1": {"edge", "other"}, "s2": {"edge"}}
    await expire(store, "other")
    assert await is_gone(store, "other")
    await work.create_groups(store, SCOPES)
    await instance_leases.unregister(store, SCOPES, "other")
    assert not await is_gone(store, "other")
    await expire(store, "edge")
    assert not (await instance_leases.read_membership(store, SCOPES, "me")).mine


async def test_partly_failed_unregistration_keeps_the_gateway_registered(store: Store) -> None:
    await instance_leases.register(store, SCOPES, "other")
    await work.create_groups(store, SCOPES)
    await store.execute("XGROUP DESTROY", store.keys.sfc_work("s2"), keys.GROUP)
    with pytest.raises(Unavailable):
        await instance_leases.unregister(store, SCOPES, "other")
    assert (await instance_leases.read_membership(store, SCOPES, "me")).members == {"s1": {"other"}, "s2": {"other"}}


@pytest.mark.parametrize("orderly", [True, False])
async def test_publisher_role_passes_on_after_release_or_lease_expiry(
    redis: RedisSettings, store: Store, *, orderly: bool
) -> None:
    await instance_leases.acquire(store, "edge", "me")
    assert await instance_leases.become_publisher(store, "s1")
    async with open_store(redis, "other") as other:
        await instance_leases.acquire(other, "other", "you")
        assert not await instance_leases.become_publisher(other, "s1")
        assert await instance_leases.become_publisher(other, "s2")
        if orderly:
            await instance_leases.release_publisher(store, SCOPES)
        else:
            await expire(store, "edge")
        assert await instance_leases.become_publisher(other, "s1")
        assert (await instance_leases.read_membership(other, SCOPES, "you")).publishers == {
            "s1": "other",
            "s2": "other",
        }
