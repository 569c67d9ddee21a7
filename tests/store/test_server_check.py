"""A server that may lose decisions is refused with the name of the setting."""

import asyncio
import contextlib
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from edge.config import RedisSettings
from edge.foundation.errors import SettingsError, Unavailable
from edge.store.bounds import NO_LIMITS
from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.dedupe import MarkCounter
from edge.store.keys import key_specs
from edge.store.open_store import open_store
from edge.store.server_check import STORE_VERSION, MemoryUsage, ServerState, can_write, read_state
from tests.free_ports import free_port
from tests.store.servers import own_server, refusal_of

FULL_SOON = ("--maxmemory", "64mb")


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ((*FULL_SOON, "--maxmemory-policy", "allkeys-lru"), "its maxmemory-policy is allkeys-lru, expected noeviction"),
        (
            (*FULL_SOON, "--maxmemory-policy", "volatile-ttl"),
            "its maxmemory-policy is volatile-ttl, expected noeviction",
        ),
        (("--appendonly", "no"), "its appendonly is no, expected yes"),
    ],
)
async def test_server_that_may_lose_data_is_refused_unless_accepted(
    tmp_path: Path, options: tuple[str, ...], problem: str
) -> None:
    async with own_server(tmp_path, *options) as server:
        with pytest.raises(SettingsError) as refused:
            await open_store(RedisSettings(url=server.url), "edge").__aenter__()
        assert problem in refused.value.message
        assert "durability" in refused.value.advice
        async with open_store(RedisSettings(url=server.url, durability="any"), "edge"):
            pass


async def loaded(settings: RedisSettings) -> None:
    """Wait until a server that was started again has loaded its data; without a login it does not report that."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(Unavailable):
                async with open_store(settings, "edge"):
                    return
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("program", ["", shutil.which("redis-server") or ""], ids=["own", "installed"])
@pytest.mark.parametrize(
    "default_user",
    ["default off", "default off ~* &* +@all", "default off ~x:* &* +@all"],
    ids=["no rights", "all rights", "other keys"],
)
async def test_server_that_drops_transactions_at_its_start_is_refused(
    tmp_path: Path, default_user: str, program: str
) -> None:
    options = ("--user", *default_user.split(), "--user", *["gateway", "on", ">secret", "~*", "&*", "+@all"])
    async with own_server(tmp_path, *options, program=program) as server:
        settings = RedisSettings(url=server.url.replace("unix://", "unix://gateway:secret@"), durability="any")
        async with open_store(settings, "edge") as store:
            key = f"{settings.prefix}:decision"
            await store.commit(join((operation("SET", key, "1"), operation("SET", f"{key}:2", "1"))))
        await server.kill()
        await server.start()
        await loaded(settings)
        async with open_store(settings, "edge") as store:
            is_dropped = await store.execute("GET", key) is None
        assert not (is_dropped and "+@all" in default_user and "~*" in default_user)
        with pytest.raises(SettingsError, match="drops transactions") if is_dropped else contextlib.nullcontext():
            async with open_store(replace(settings, durability="required"), "edge"):
                pass


async def test_user_without_the_right_to_see_lost_transactions_is_served(tmp_path: Path) -> None:
    rights = "gateway on >secret ~* &* +@all -@dangerous +info +config|get"
    options = ("--user", "default", "off", "--user", *rights.split())
    async with own_server(tmp_path, *options, program=shutil.which("redis-server") or "") as server:
        settings = RedisSettings(url=server.url.replace("unix://", "unix://gateway:secret@"))
        async with open_store(settings, "edge") as store:
            assert await store.execute("GET", store.keys.store_version()) == str(STORE_VERSION)


async def test_all_data_loss_risks_are_reported_at_once(tmp_path: Path) -> None:
    options = (*FULL_SOON, "--maxmemory-policy", "allkeys-lru", "--appendonly", "no")
    async with own_server(tmp_path, *options) as server:
        with pytest.raises(SettingsError) as refused:
            await open_store(RedisSettings(url=server.url), "edge").__aenter__()
    assert len(refused.value.problems) == 2


async def test_eviction_policy_without_memory_limit_is_accepted(tmp_path: Path) -> None:
    async with (
        own_server(tmp_path, "--maxmemory-policy", "allkeys-lru") as server,
        open_store(RedisSettings(url=server.url), "edge"),
    ):
        pass


async def test_a_store_of_a_newer_version_is_refused(store: Store, redis: RedisSettings) -> None:
    assert await store.execute("GET", store.keys.store_version()) == str(STORE_VERSION)
    await store.execute("SET", store.keys.store_version(), STORE_VERSION + 1)
    with pytest.raises(SettingsError, match="written by a newer version"):
        await open_store(redis, "edge").__aenter__()


async def state_of(store: Store) -> ServerState:
    return await read_state(store, NO_LIMITS, MarkCounter())


async def test_the_memory_use_of_a_server_is_reported(tmp_path: Path) -> None:
    async with own_server(tmp_path, *FULL_SOON) as server, open_store(RedisSettings(url=server.url), "edge") as store:
        reported = (await state_of(store)).memory
    assert reported.limit == 64 * 1024 * 1024
    assert 0 < reported.fullness < 1


def test_memory_without_a_limit_is_never_full() -> None:
    assert MemoryUsage(used=10**9, limit=0).fullness == 0.0


async def test_server_is_reported_writable(store: Store) -> None:
    assert (await state_of(store)).can_write


@pytest.mark.parametrize(
    ("enabled", "status", "expected"), [("1", "ok", True), ("1", "err", False), ("0", "err", True)]
)
def test_server_with_a_failed_last_write_is_reported_unwritable(enabled: str, status: str, *, expected: bool) -> None:
    assert can_write({"aof_enabled": enabled, "aof_last_write_status": status}) is expected


@pytest.mark.parametrize("program", ["", "redis-server"])
async def test_redis_cluster_is_refused_with_the_way_to_sentinel(tmp_path: Path, program: str) -> None:
    port = free_port()
    cluster = ("--port", str(port), "--cluster-enabled", "yes", "--cluster-port", str(free_port()))
    async with own_server(tmp_path, *cluster, program=program) as server:
        refused = await refusal_of(server.url)
    assert isinstance(refused, SettingsError)
    assert "Redis Cluster" in refused.message
    assert "redis+sentinel://" in refused.advice


WRITES = {
    "string": ("SET", "text"),
    "hash": ("HSET", "field", "text"),
    "set": ("SADD", "member"),
    "zset": ("ZADD", 1, "member"),
    "list": ("RPUSH", "member"),
    "stream": ("XADD", "*", "field", "text"),
}


async def empty_store(store: Store) -> None:
    """Take the mark away that says the store is ours, as after it was emptied."""
    await store.execute("DEL", store.keys.store_version())


@pytest.mark.parametrize(
    ("name", "command", "arguments"),
    [
        ("users", "SADD", ("somebody",)),
        ("joborder:J1", "SET", ("{}",)),
        ("sfc:work:station-1", "LPUSH", ("work",)),
        ("form", "HSET", ("field", "text")),
    ],
)
async def test_foreign_keys_are_reported_and_the_store_is_not_written(
    redis: RedisSettings, store: Store, name: str, command: str, arguments: tuple[str, ...]
) -> None:
    await empty_store(store)
    await store.commit(operation(command, f"{redis.prefix}:{name}", *arguments))
    with pytest.raises(SettingsError, match=name) as caught:
        async with open_store(redis, "edge"):
            pytest.fail("it was opened")
    assert "[redis] prefix" in caught.value.advice
    assert await store.execute("TYPE", store.keys.store_version()) in {"none", "hash"}


async def test_one_foreign_key_is_found_among_thousands(redis: RedisSettings, store: Store) -> None:
    await empty_store(store)
    await store.read([("SET", f"{redis.prefix}-other:{number}", "x") for number in range(5000)])
    await store.commit(operation("SADD", f"{redis.prefix}:users", "somebody"))
    with pytest.raises(SettingsError, match="users"):
        async with open_store(redis, "edge"):
            pytest.fail("it was opened")


async def test_every_own_key_is_accepted(redis: RedisSettings, store: Store) -> None:
    for spec in key_specs():
        command, *arguments = WRITES[spec.type]
        name = spec.pattern.replace("{id}", "a:b\nc").replace("{", "").replace("}", "")
        if spec.name != "store_version":
            await store.commit(operation(str(command), f"{redis.prefix}:{name}", *arguments))
    await empty_store(store)
    async with open_store(redis, "edge") as again:
        assert await again.execute("GET", again.keys.store_version())


async def test_keys_outside_the_prefix_are_ignored(redis: RedisSettings, store: Store) -> None:
    await empty_store(store)
    await store.commit(operation("LPUSH", f"{redis.prefix}-other:users", "somebody"))
    async with open_store(redis, "edge"):
        pass
    await store.execute("DEL", f"{redis.prefix}-other:users")
