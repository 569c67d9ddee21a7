"""Instances on one store: names are unique, one instance publishes, and lost instances are detected."""

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator

import pytest

from edge.access.instances import process_token
from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.station.instance import LOOK_EVERY_S, Gate, Instance, open_instance
from edge.store import instance_leases
from edge.store.client import Store
from edge.store.lease_watch import LIFETIME_S, parse_lease
from edge.store.open_store import open_store
from tests.station.plant import SCOPE, until, until_true


@contextlib.asynccontextmanager
async def another(redis: RedisSettings, name: str = "other") -> AsyncIterator[Instance]:
    """Open one more instance on the store of the settings."""
    async with open_store(redis, name) as store, open_instance(store, (SCOPE,)) as instance:
        yield instance


async def dead_token() -> str:
    """Return the token of a process that has ended."""
    code = "from edge.access.instances import process_token; print(process_token())"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", code, stdout=asyncio.subprocess.PIPE)
    reported, _ = await process.communicate()
    return reported.decode().strip()


async def test_work_runs_only_while_its_gate_is_open() -> None:
    log: list[str] = []

    async def work() -> None:
        log.append("begun")
        try:
            await asyncio.Event().wait()
        finally:
            log.append("ended")

    switch = Gate()
    async with background_task(switch.run_while_open(work, "work"), "while on"):
        await asyncio.sleep(0)
        assert log == []
        for _ in range(2):
            switch.set_open(is_open=True)
            await until_true(lambda: log and log[-1] == "begun")
            switch.set_open(is_open=False)
            await until_true(lambda: log[-1] == "ended")
    assert log == ["begun", "ended"] * 2


async def test_gateway_name_in_use_is_refused_and_its_holder_continues(redis: RedisSettings) -> None:
    async with another(redis) as first:
        with pytest.raises(Unavailable, match="another gateway of the name 'other'") as caught:
            async with another(redis):
                pytest.fail("both bear it")
        assert "name" in caught.value.advice
        assert first.lease_held.is_open


async def test_gateway_name_is_free_at_once_after_a_clean_stop(redis: RedisSettings) -> None:
    async with open_store(redis, "other") as store:
        for _ in range(2):
            async with another(redis) as instance:
                assert instance.publisher_gates[SCOPE].is_open
            assert await store.execute("GET", store.keys.lease_instance("other")) is None


async def test_name_is_free_at_once_when_its_release_is_not_in_the_new_primary(
    redis: RedisSettings, store: Store
) -> None:
    """A gateway opens its store again after a failover: its own former lease must not delay it by four seconds."""
    key = store.keys.lease_instance("other")
    async with another(redis):
        lease = await store.execute("GET", key)
    await store.execute("SET", key, lease)
    async with asyncio.timeout(LIFETIME_S / 2), another(redis) as instance:
        assert instance.lease_held.is_open


async def test_name_of_a_killed_process_on_this_host_is_reused_at_once(redis: RedisSettings, store: Store) -> None:
    await instance_leases.acquire(store, "other", await dead_token())
    async with asyncio.timeout(LIFETIME_S / 2), another(redis) as instance:
        assert instance.lease_held.is_open


async def test_name_of_a_killed_process_on_another_host_is_taken_after_its_lease(
    redis: RedisSettings, store: Store
) -> None:
    await instance_leases.acquire(store, "other", f"elsewhere pid:[1] 1 {process_token()[-36:]}")
    async with asyncio.timeout(60), another(redis) as instance:
        assert instance.lease_held.is_open


async def test_held_lease_is_renewed_beyond_its_lifetime(redis: RedisSettings, store: Store) -> None:
    async with another(redis) as instance:
        await asyncio.sleep(LIFETIME_S + 1)
        assert not await instance_leases.acquire(store, "other", instance.token)
        assert await store.execute("PTTL", store.keys.lease_instance("other")) == -1
        assert instance.lease_held.is_open


async def test_publisher_role_passes_on_when_its_holder_leaves(redis: RedisSettings, store: Store) -> None:
    async with another(redis) as second:
        assert second.publisher_gates[SCOPE].is_open
        async with open_instance(store, (SCOPE,)) as first:
            assert not first.publisher_gates[SCOPE].is_open
            await second.leave()
            second.lease_held.set_open(is_open=False)
            await until_true(lambda: first.publisher_gates[SCOPE].is_open)


async def test_killed_instance_is_replaced_within_five_seconds(redis: RedisSettings, store: Store) -> None:
    """The other is a store only: its lease is not renewed any more, as after a kill on another host."""
    async with open_instance(store, (SCOPE,)) as instance, open_store(redis, "other") as other:
        await instance_leases.release_publisher(store, (SCOPE,))
        await instance_leases.acquire(other, "other", "other")
        await instance_leases.register(other, (SCOPE,), "other")
        await other.execute("SET", store.keys.lease_publisher(SCOPE), "other")
        async with background_task(keep(other), "the lease of the other"):
            await until_true(lambda: not instance.publisher_gates[SCOPE].is_open)
            await asyncio.sleep(LIFETIME_S)
            assert instance.gone.empty()
        # It is found at the first look after the end of its lease.
        assert LIFETIME_S + LOOK_EVERY_S <= 5
        async with asyncio.timeout(60):
            assert (await instance.gone.get()).name == "other"
        await until_true(lambda: instance.publisher_gates[SCOPE].is_open)


async def keep(store: Store) -> None:
    """Keep the lease of a store's consumer."""
    value: str | None = ""
    while value is not None:
        value = await instance_leases.renew(store, store.consumer, "other", value)
        await asyncio.sleep(0.5)


async def test_instance_pauses_while_another_holds_its_lease(redis: RedisSettings, store: Store) -> None:
    lease_regained: list[bool] = []
    async with another(redis) as instance:
        instance.lease_regained.append(lambda: lease_regained.append(True))
        key = store.keys.lease_instance("other")
        await store.execute("SET", key, "an usurper:1")
        await until_true(lambda: not instance.lease_held.is_open)
        assert not instance.publisher_gates[SCOPE].is_open
        assert await store.execute("GET", key) == "an usurper:1"
        await store.execute("DEL", key)
        await until_true(lambda: instance.lease_held.is_open)
        assert lease_regained == [True]
        await until_true(lambda: instance.publisher_gates[SCOPE].is_open)


async def test_expired_unclaimed_lease_is_acquired_again(redis: RedisSettings, store: Store) -> None:
    async with another(redis) as instance:
        await store.execute("DEL", store.keys.lease_instance("other"), store.keys.instances(SCOPE))

        async def is_back() -> bool:
            holder = await instance_leases.acquire(store, "other", "me", "none")
            return holder is not None and parse_lease(holder).token == instance.token

        async def is_registered() -> bool:
            return bool(await store.execute("SISMEMBER", store.keys.instances(SCOPE), "other"))

        await until(is_registered)
        assert await is_back()
