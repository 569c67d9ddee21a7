"""A snapshot restores every kind of key on another server unchanged, or changes no key."""

import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from edge.config import RedisSettings
from edge.features.admin.snapshot import KeyDump, StringKey, dump, restore_dump
from edge.foundation.errors import Unavailable
from edge.store.client import Store
from edge.store.commit import Commit, join, operation
from edge.store.open_store import open_store
from tests.store.servers import own_server

NOW = 1_790_000_000_000
LONG = 10**12
"""Milliseconds that are not over when the test is."""


def nothing(_: int) -> None:
    """Drop the progress of a restore."""


def of(store: Store, key: str) -> str:
    return f"{store.keys.prefix}:{key}"


def everything(store: Store) -> Commit:
    """Write a key of each kind."""
    work = of(store, "sfc:work:s")
    return join(
        (
            operation("SET", of(store, "counter:c"), "7"),
            operation("SET", of(store, "cededupe:x"), "", "PX", LONG),
            operation("SET", of(store, "lease:instance:edge"), "token", "PX", LONG),
            operation("SET", of(store, "health:edge"), "{}", "PX", LONG),
            operation("HSET", of(store, "joborder:J1"), "rev", "3", "order", '{"JobOrderID":"J1 – ü\\u0000"}'),
            operation("SADD", of(store, "active-scopes"), "s", "t"),
            operation("RPUSH", of(store, "telemetry:window:w"), "b", "a", "b"),
            operation("ZADD", of(store, "sfc:timers"), "1790000000123", "J1", "inf", "J2", "0.5", "J3"),
            operation("XADD", work, "1-1", "job_id", "J1"),
            operation("XADD", work, "1-2", "job_id", "J2"),
            operation("XADD", work, "5-0", "job_id", "gone"),
            operation("XDEL", work, "5-0"),
            operation("XGROUP", "CREATE", work, "sfc-engine", "0"),
            operation("XREADGROUP", "GROUP", "sfc-engine", "edge", "COUNT", "1", "STREAMS", work, ">"),
            operation("XGROUP", "CREATE", of(store, "sfc:work:t"), "sfc-engine", "0", "MKSTREAM"),
        )
    )


@pytest_asyncio.fixture
async def another(valkey: str, unique: str) -> AsyncIterator[Store]:
    """A store of another prefix."""
    async with open_store(RedisSettings(url=valkey, prefix=f"{unique}x"), None) as opened:
        yield opened


def lasting(snapshot: list[KeyDump]) -> list[KeyDump]:
    """Leave out what bears an instant of this run."""
    return [key for key in snapshot if key.expires_at is None]


async def test_restored_store_equals_the_dumped_one(store: Store, another: Store) -> None:
    await store.commit(everything(store))
    taken = await dump(store, NOW)
    await restore_dump(another, taken, 0, nothing)
    assert lasting(await dump(another, NOW)) == lasting(taken)
    assert {key.key for key in taken} >= {"joborder:J1", "sfc:work:s", "sfc:work:t", "cededupe:x", "active-scopes"}


async def test_restored_work_keeps_its_consumer_or_stays_unclaimed(store: Store, another: Store) -> None:
    await store.commit(everything(store))
    await restore_dump(another, await dump(store, NOW), 0, nothing)
    stream = of(another, "sfc:work:s")
    _, oldest, _, consumers = await another.execute("XPENDING", stream, "sfc-engine")
    assert (oldest, consumers) == ("1-1", [["edge", "1"]])
    fresh = await another.execute("XREADGROUP", "GROUP", "sfc-engine", "edge", "STREAMS", stream, ">")
    assert [entry[0] for entry in fresh[stream][0]] == ["1-2"]
    assert await another.execute("XADD", stream, "5-*", "job_id", "J3") == "5-1"


async def test_leases_and_health_reports_are_not_dumped(store: Store) -> None:
    await store.commit(everything(store))
    assert not {"lease:instance:edge", "health:edge"} & {key.key for key in await dump(store, NOW)}


async def test_expired_key_is_not_restored(another: Store) -> None:
    old = [StringKey(key="cededupe:old", expires_at=NOW - 1, value=""), StringKey(key="cededupe:new", value="")]
    await restore_dump(another, old, NOW, nothing)
    assert [key.key for key in await dump(another, NOW)] == ["cededupe:new"]


async def test_restore_replaces_the_existing_store(store: Store, another: Store) -> None:
    await another.commit(everything(another))
    await store.execute("SET", of(store, "counter:c"), "1")
    await restore_dump(another, await dump(store, NOW), NOW, nothing)
    assert {key.key for key in await dump(another, NOW)} <= {"counter:c", "form"}
    assert await another.execute("GET", of(another, "counter:c")) == "1"


async def test_aborted_restore_leaves_the_store_unchanged(another: Store) -> None:
    await another.commit(everything(another))
    before = lasting(await dump(another, NOW))
    many = [StringKey(key=f"counter:{number}", value="1") for number in range(500)]

    def break_off(done: int) -> None:
        if done == 400:
            raise Unavailable("the plug was pulled")

    with pytest.raises(Unavailable):
        await restore_dump(another, many, NOW, break_off)
    assert lasting(await dump(another, NOW)) == before
    await restore_dump(another, many[:1], NOW, nothing)
    assert [key.key for key in await dump(another, NOW)] == ["counter:0"]


async def test_large_hash_is_dumped_and_restored_completely(store: Store, another: Store) -> None:
    key = of(store, "joborder:big")
    for start in range(0, 9000, 1000):
        pairs = [text for number in range(start, start + 1000) for text in (f"f{number}", "x" * 50)]
        await store.execute("HSET", key, *pairs)
    taken = await dump(store, NOW)
    reported: list[int] = []
    await restore_dump(another, taken, NOW, reported.append)
    assert await another.execute("HLEN", of(another, "joborder:big")) == 9000
    assert reported[-1] == len(taken)


@pytest.mark.skipif(not shutil.which("redis-server"), reason="no redis-server here")
async def test_a_snapshot_of_valkey_9_restores_to_redis_7(store: Store, tmp_path: Path) -> None:
    await store.commit(everything(store))
    taken = await dump(store, NOW)
    async with (
        own_server(tmp_path, program=shutil.which("redis-server") or "") as server,
        open_store(RedisSettings(url=server.url), None) as redis_7,
    ):
        await restore_dump(redis_7, taken, 0, nothing)
        assert lasting(await dump(redis_7, NOW)) == lasting(taken)
