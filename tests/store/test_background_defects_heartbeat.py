"""A stalled task is reported; a waiting, working or ended task is not."""

import asyncio

import pytest

from edge.store.background import Heartbeat
from edge.store.client import Store

PATIENCE_S = 25.0


class FakeClock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def beats(clock: FakeClock) -> Heartbeat:
    beats = Heartbeat(PATIENCE_S, clock)
    beats.expect(["timers"])
    return beats


async def beat_once_then_wait(beats: Heartbeat, name: str = "timers") -> asyncio.Task[None]:
    async def work() -> None:
        beats.beat()
        await asyncio.sleep(60)

    task = asyncio.create_task(work(), name=name)
    await asyncio.sleep(0)
    return task


async def beat_once_then_end(beats: Heartbeat) -> None:
    async def work() -> None:
        beats.beat()

    await asyncio.create_task(work(), name="timers")


async def test_task_without_heartbeat_is_stalled(beats: Heartbeat, clock: FakeClock) -> None:
    task = await beat_once_then_wait(beats)
    clock.now += PATIENCE_S
    assert beats.stalled() == []
    clock.now += 0.1
    assert beats.stalled() == ["timers"]
    task.cancel()


async def test_task_with_regular_heartbeat_is_not_stalled(beats: Heartbeat, clock: FakeClock) -> None:
    async def work() -> None:
        while True:
            beats.beat()
            await asyncio.sleep(0)

    task = asyncio.create_task(work(), name="timers")
    for _ in range(3):
        await asyncio.sleep(0)
        clock.now += 0.9 * PATIENCE_S
        assert beats.stalled() == []
    task.cancel()


async def test_ended_task_is_not_stalled(beats: Heartbeat, clock: FakeClock) -> None:
    await beat_once_then_end(beats)
    clock.now += 2 * PATIENCE_S
    assert beats.stalled() == []


async def test_restarted_task_without_heartbeat_is_stalled(beats: Heartbeat, clock: FakeClock) -> None:
    await beat_once_then_end(beats)
    clock.now += 2 * PATIENCE_S
    task = await beat_once_then_wait(beats)
    assert beats.stalled() == []
    clock.now += 2 * PATIENCE_S
    assert beats.stalled() == ["timers"]
    task.cancel()


async def test_unexpected_task_is_never_stalled(beats: Heartbeat, clock: FakeClock) -> None:
    task = await beat_once_then_wait(beats, name="dispatch of J1")
    clock.now += 2 * PATIENCE_S
    assert beats.stalled() == []
    task.cancel()


async def test_store_call_counts_as_a_heartbeat(store: Store, beats: Heartbeat, clock: FakeClock) -> None:
    store.heartbeat = beats
    called = asyncio.Event()

    async def work() -> None:
        await store.execute("PING")
        called.set()
        await asyncio.sleep(60)

    task = asyncio.create_task(work(), name="timers")
    await called.wait()
    clock.now += 2 * PATIENCE_S
    assert beats.stalled() == ["timers"]
    task.cancel()
