"""The store client reports every failure of the server as a defined error."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Defect, Unavailable
from edge.store.client import MAX_BLOCK_MS, Store, block_ms
from edge.store.commit import Commit, Committed, Stale, at_revision, operation
from edge.store.open_store import open_store
from tests.free_ports import free_port
from tests.store.servers import Server, own_server

SAVED = operation("HSET", "word", "rev", "1", "text", "kept")


@contextlib.asynccontextmanager
async def own_store(directory: Path) -> AsyncIterator[tuple[Server, Store]]:
    """Run a server of the test's own and open it."""
    async with (
        own_server(directory) as server,
        open_store(RedisSettings(url=server.url), "edge") as store,
    ):
        yield server, store


async def test_writing_to_a_server_turned_replica_is_unavailable(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (_, store):
        await store.execute("REPLICAOF", "127.0.0.1", free_port())
        with pytest.raises(Unavailable, match="replica"):
            await store.commit(SAVED)
        with pytest.raises(Unavailable, match="replica"):
            await store.execute("SET", "word", "lost")


async def test_replica_without_stale_data_is_unavailable(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (_, store):
        await store.execute("CONFIG", "SET", "replica-serve-stale-data", "no")
        await store.execute("REPLICAOF", "127.0.0.1", free_port())
        with pytest.raises(Unavailable):
            await store.execute("GET", "word")


async def test_commit_with_full_memory_is_refused_as_a_whole(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (_, store):
        await store.execute("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(Unavailable, match="memory"):
            await store.commit(SAVED)
        await store.execute("CONFIG", "SET", "maxmemory", "0")
        assert await store.execute("EXISTS", "word") == 0


async def test_unknown_command_is_a_defect(store: Store) -> None:
    with pytest.raises(Defect, match="refuses"):
        await store.execute("NOSUCHCOMMAND")


async def test_undecodable_bytes_are_read_escaped(store: Store, unique: str) -> None:
    await store.execute("SADD", f"{unique}:set", b"\xff\xfe", "größe")
    assert await store.execute("SMEMBERS", f"{unique}:set") == {"\\xff\\xfe", "größe"}


async def test_empty_read_needs_no_server(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (server, store):
        await server.kill()
        assert await store.read([]) == []


async def test_flushed_scripts_are_loaded_again(store: Store, unique: str) -> None:
    await store.execute("SCRIPT", "FLUSH")
    assert await store.commit(operation("SET", unique, "kept", "PX", 60_000)) == Committed()
    assert await store.execute("GET", unique) == "kept"


async def test_commit_after_a_server_restart_succeeds(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (server, store):
        await store.commit(SAVED)
        await server.kill()
        with pytest.raises(Unavailable):
            await store.commit(SAVED)
        await server.start()
        assert await store.commit(Commit(guards=(at_revision("word", 0),))) == Stale("word")
        assert await store.execute("HGET", "word", "text") == "kept"


async def test_cancelled_call_leaves_no_reply_for_the_next_call(store: Store, unique: str) -> None:
    async def ask(number: int) -> None:
        assert await store.execute("ECHO", f"{unique} {number}") == f"{unique} {number}"

    asked = [asyncio.create_task(ask(number)) for number in range(50)]
    await asyncio.sleep(0)
    for task in asked[::2]:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await ask(51)
    assert all(task.cancelled() or task.exception() is None for task in asked)


async def test_commands_that_find_nothing_end_together() -> None:
    """Nine readers blocked for five seconds each woke an idle gateway at nine instants."""
    loop = asyncio.get_running_loop()
    before, blocked_ms, after = loop.time(), block_ms(), loop.time()
    assert 1 <= blocked_ms <= MAX_BLOCK_MS
    earliest, latest = before + blocked_ms / 1000, after + blocked_ms / 1000
    tick = round(latest / 5) * 5
    assert earliest - 0.002 <= tick <= latest + 0.001
