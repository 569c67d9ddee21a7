"""A long-lived visitor serves with the next store when its store is over."""

import asyncio
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.store.client import Store
from edge.store.reopening import REOPEN_S, serve_stores
from tests.store.sentinel_line import open_line


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
    """The pause and the wait for the stop went on in tasks of their own."""

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
