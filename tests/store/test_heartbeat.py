"""A stalled task is reported; a waiting, working or ended task is not."""

import asyncio

import pytest

from edge.store.client import Store
from edge.store.heartbeat import Heartbeat


@pytest.fixture
def beats() -> Heartbeat:
    """A heartbeat that loses patience soon."""
    beats = Heartbeat(patience_s=0.05)
    beats.expect(["timers"])
    return beats


async def beat_once_then(beats: Heartbeat, seconds: float, name: str = "timers") -> asyncio.Task[None]:
    async def work() -> None:
        beats.beat()
        await asyncio.sleep(seconds)

    task = asyncio.create_task(work(), name=name)
    await asyncio.sleep(0.1)
    return task


async def test_task_without_heartbeat_is_stalled(beats: Heartbeat) -> None:
    task = await beat_once_then(beats, 60)
    assert beats.stalled() == ["timers"]
    task.cancel()


async def test_task_with_regular_heartbeat_is_not_stalled(beats: Heartbeat) -> None:
    async def work() -> None:
        while True:
            beats.beat()
            await asyncio.sleep(0.01)

    task = asyncio.create_task(work(), name="timers")
    await asyncio.sleep(0.1)
    assert beats.stalled() == []
    task.cancel()


async def test_ended_task_is_not_stalled(beats: Heartbeat) -> None:
    await (await beat_once_then(beats, 0))
    assert beats.stalled() == []


async def test_restarted_task_without_heartbeat_is_stalled(beats: Heartbeat) -> None:
    await (await beat_once_then(beats, 0))
    task = await beat_once_then(beats, 60)
    assert beats.stalled() == ["timers"]
    task.cancel()


async def test_unexpected_task_is_never_stalled(beats: Heartbeat) -> None:
    task = await beat_once_then(beats, 60, name="dispatch of J1")
    assert beats.stalled() == []
    task.cancel()


async def test_store_call_counts_as_a_heartbeat(store: Store) -> None:
    store.heartbeat = Heartbeat(patience_s=0.05)
    store.heartbeat.expect(["timers"])

    async def work() -> None:
        await store.execute("PING")
        await asyncio.sleep(60)

    task = asyncio.create_task(work(), name="timers")
    await asyncio.sleep(0.2)
    assert store.heartbeat.stalled() == ["timers"]
    task.cancel()
