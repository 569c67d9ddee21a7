"""Every way to open the store, and the error for every misconfiguration."""

import asyncio
from pathlib import Path

import msgspec
import pytest
import redis.asyncio as aioredis

from edge.config import RedisSettings
from edge.foundation.errors import SettingsError, Unavailable
from edge.store.client import Store
from edge.store.commit import Committed, operation
from edge.store.connection import Endpoint
from edge.store.open_store import REOPEN_S, open_store, serve_stores
from edge.store.sentinels import endpoint_of
from tests.free_ports import free_port
from tests.store.sentinel_line import open_line
from tests.store.servers import own_server, refusal_of

SAVED = operation("HSET", "word", "rev", "1", "text", "kept")


async def test_a_server_is_reached_over_tcp(tmp_path: Path) -> None:
    port = free_port()
    async with (
        own_server(tmp_path, "--port", str(port)),
        open_store(RedisSettings(url=f"redis://127.0.0.1:{port}"), "edge") as store,
    ):
        assert await store.commit(SAVED) == Committed()
        assert await store.execute("HGET", "word", "text") == "kept"


async def test_a_server_is_reached_over_a_unix_socket(valkey: str, unique: str) -> None:
    async with open_store(RedisSettings(url=valkey), "edge") as store:
        await store.execute("SET", unique, "kept", "PX", 60_000)
        assert await store.execute("GET", unique) == "kept"


async def test_the_password_of_the_settings_is_used(tmp_path: Path) -> None:
    async with (
        own_server(tmp_path, "--requirepass", "sesame") as server,
        open_store(RedisSettings(url=server.url, password="sesame"), "edge") as store,
    ):
        assert await store.commit(SAVED) == Committed()


@pytest.mark.parametrize("password", ["", "wrong"])
async def test_missing_or_wrong_password_is_a_settings_error(tmp_path: Path, password: str) -> None:
    async with own_server(tmp_path, "--requirepass", "sesame") as server:
        error = await refusal_of(server.url, password)
    assert isinstance(error, SettingsError)
    assert "password" in error.message
    assert "[redis] password" in error.advice


async def test_user_without_write_permission_is_a_settings_error(tmp_path: Path) -> None:
    reader = ("--user", "default", "on", "nopass", "~*", "+@read", "+hello", "+ping", "+client")
    async with own_server(tmp_path, *reader) as server:
        error = await refusal_of(server.url)
    assert isinstance(error, SettingsError)
    assert "may not" in error.message


@pytest.mark.parametrize("url", ["redis://127.0.0.1:{port}", "unix:///nowhere/redis.sock", "redis://nowhere.invalid"])
async def test_unreachable_server_is_reported_with_its_address(url: str) -> None:
    url = url.format(port=free_port())
    error = await refusal_of(url)
    assert isinstance(error, Unavailable)
    assert url in error.message


async def test_the_password_in_an_address_is_not_reported() -> None:
    error = await refusal_of(f"redis://:sesame@127.0.0.1:{free_port()}")
    assert "sesame" not in str(error)
    assert "127.0.0.1" in error.message


async def test_server_of_another_protocol_is_unavailable() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await refusal_of(f"redis://127.0.0.1:{port}")
    assert isinstance(error, Unavailable)


async def test_read_only_replica_is_refused_at_start(tmp_path: Path) -> None:
    async with own_server(tmp_path, "--replicaof", f"127.0.0.1 {free_port()}") as server:
        error = await refusal_of(server.url)
    assert isinstance(error, Unavailable)
    assert "replica" in error.message


async def test_server_that_refuses_writes_is_unavailable(tmp_path: Path) -> None:
    async with own_server(tmp_path, "--min-replicas-to-write", "1") as server:
        error = await refusal_of(server.url)
    assert isinstance(error, Unavailable)


@pytest.mark.parametrize("protocol", ["", "?protocol=2", "?protocol=3"])
async def test_replies_have_the_same_shape_in_every_redis_protocol_version(
    valkey: str, unique: str, protocol: str
) -> None:
    async with open_store(RedisSettings(url=valkey + protocol), "edge") as store:
        await store.commit(operation("HSET", unique, "field", "text"))
        await store.commit(operation("ZADD", f"{unique}z", 1_700_000_000_001, "member"))
        await store.commit(operation("XADD", f"{unique}x", "*", "field", "text"))
        [hashed, ranked, streamed] = await store.read(
            [
                ("HGETALL", unique),
                ("ZRANGE", f"{unique}z", 0, 0, "WITHSCORES"),
                ("XRANGE", f"{unique}x", "-", "+"),
            ]
        )
        assert hashed == {"field": "text"}
        assert [list(value) for value in ranked] == [["member", 1_700_000_000_001.0]]
        assert len(streamed) == 1


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("redis://", Endpoint(host="localhost")),
        ("redis://10.0.0.7:6380/3", Endpoint(host="10.0.0.7", port=6380, database=3)),
        ("redis://h/3?db=5", Endpoint(host="h", database=5)),
        ("redis://h/no-number", Endpoint(host="h")),
        ("redis://gw:p%40ss@h", Endpoint(host="h", username="gw", password="p@ss")),
        ("redis://h?username=gw&password=p%40ss&client_name=a", Endpoint("", "h", 6379, None, "gw", "p@ss", 0, "a")),
        ("redis://[::1]:7", Endpoint(host="::1", port=7)),
        ("unix:///run/a%20b.sock?db=2", Endpoint(path="/run/a b.sock", host="localhost", database=2)),
        ("unix://gw:pw@/run/r.sock", Endpoint(path="/run/r.sock", host="localhost", username="gw", password="pw")),
    ],
)
async def test_address_leads_where_redis_py_goes(url: str, expected: Endpoint) -> None:
    assert endpoint_of(RedisSettings(url=url), url) == expected
    theirs = aioredis.ConnectionPool.from_url(url).make_connection()
    endpoint = Endpoint(
        path=getattr(theirs, "path", ""),
        host=getattr(theirs, "host", ""),
        port=int(getattr(theirs, "port", 6379)),
        username=theirs.username or "",
        password=theirs.password or "",
        database=int(theirs.db or 0),
        client_name=theirs.client_name or "",
    )
    assert endpoint == (msgspec.structs.replace(expected, host="") if expected.path else expected)


def test_password_of_the_settings_precedes_that_of_the_address() -> None:
    settings = RedisSettings(url="redis://gw:old@h", password="new")
    assert endpoint_of(settings, settings.url).password == "new"


async def test_visitor_serves_with_the_store_of_the_new_primary(tmp_path: Path, unique: str) -> None:
    generations: asyncio.Queue[str] = asyncio.Queue()

    async def serve(store: Store) -> None:
        await generations.put(store.keys.generation_id)
        await asyncio.Event().wait()

    async with open_line(tmp_path) as line:
        serving = asyncio.create_task(serve_stores(line.settings(unique), serve, asyncio.Event()))
        first = await generations.get()
        await line.nodes[0].kill()
        async with asyncio.timeout(60):
            assert await generations.get() != first
        serving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await serving


async def test_store_lost_before_the_work_has_begun_is_opened_again(redis: RedisSettings) -> None:
    served = 0

    async def serve(_: Store) -> None:
        nonlocal served
        served += 1
        if served == 1:
            raise Unavailable("the primary is not confirmed")

    async with asyncio.timeout(60):
        await serve_stores(redis, serve, asyncio.Event())
    assert served == 2


async def test_visitor_that_stops_ends_between_two_stores(redis: RedisSettings) -> None:
    stopping = asyncio.Event()

    async def end(store: Store) -> None:
        stopping.set()
        store.end("the primary has changed")
        await asyncio.Event().wait()

    async with asyncio.timeout(60):
        await serve_stores(redis, end, stopping)


async def test_visitor_that_is_cancelled_between_two_stores_leaves_no_task(redis: RedisSettings) -> None:
    """The pause and the wait for the stop continued in tasks of their own."""

    async def end(store: Store) -> None:
        store.end("the primary has changed")
        asyncio.get_running_loop().call_later(REOPEN_S[0] / 4, serving.cancel)
        await asyncio.Event().wait()

    before = asyncio.all_tasks()
    serving = asyncio.create_task(serve_stores(redis, end, asyncio.Event()))
    await asyncio.wait((serving,))
    assert asyncio.all_tasks() == before


async def test_first_store_that_cannot_be_opened_is_an_error(tmp_path: Path) -> None:
    async def serve(_: Store) -> None:
        raise AssertionError

    with pytest.raises(Unavailable, match="nowhere"):
        await serve_stores(RedisSettings(url=f"unix://{tmp_path}/nowhere"), serve, asyncio.Event())


async def test_visitor_that_has_served_ends(redis: RedisSettings) -> None:
    served: list[str] = []

    async def serve(store: Store) -> None:
        served.append(store.keys.prefix)

    await serve_stores(redis, serve, asyncio.Event())
    assert served == [redis.prefix]
