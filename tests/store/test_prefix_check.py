"""Data of another application is detected, and own data is never reported as foreign."""

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import SettingsError
from edge.store.client import Store
from edge.store.commit import operation
from edge.store.keys import key_specs
from edge.store.opening import open_store

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
