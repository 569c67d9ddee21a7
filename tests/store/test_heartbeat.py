"""A task that hangs is noticed; one that waits, works, or has ended is none."""

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


async def test_a_task_that_beats_no_more_is_silent(beats: Heartbeat) -> None:
    task = await beat_once_then(beats, 60)
    assert beats.stalled() == ["timers"]
    task.cancel()


async def test_a_task_that_goes_on_is_not(beats: Heartbeat) -> None:
    async def work() -> None:
        while True:
            beats.beat()
            await asyncio.sleep(0.01)

    task = asyncio.create_task(work(), name="timers")
    await asyncio.sleep(0.1)
    assert beats.stalled() == []
    task.cancel()


async def test_a_task_that_has_ended_is_not(beats: Heartbeat) -> None:
    await (await beat_once_then(beats, 0))
    assert beats.stalled() == []


async def test_a_task_that_began_again_counts_as_the_new_one(beats: Heartbeat) -> None:
    await (await beat_once_then(beats, 0))
    task = await beat_once_then(beats, 60)
    assert beats.stalled() == ["timers"]
    task.cancel()


async def test_others_may_be_silent(beats: Heartbeat) -> None:
    task = await beat_once_then(beats, 60, name="dispatch of J1")
    assert beats.stalled() == []
    task.cancel()


async def test_a_task_that_asks_the_store_beats(store: Store) -> None:
    store.heartbeat = Heartbeat(patience_s=0.05)
    store.heartbeat.expect(["timers"])

    async def work() -> None:
        await store.execute("PING")
        await asyncio.sleep(60)

    task = asyncio.create_task(work(), name="timers")
    await asyncio.sleep(0.2)
    assert store.heartbeat.stalled() == ["timers"]
    task.cancel()
