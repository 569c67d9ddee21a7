"""Periodic tasks wake at common ticks, independent of their start; long work lets others run."""

import asyncio
import time
from collections.abc import Iterator

from hypothesis import assume, example, given
from hypothesis import strategies as st

from edge.foundation.ticks import REST_S, Slices, in_slices, until_tick


@example(8388608.999999998, 0.5)
@given(st.floats(0, 1e7), st.sampled_from((0.05, 0.5, 1.0, 2.0, 5.0, 10.0)))
def test_tick_is_within_the_interval_and_common_to_all_tasks(now: float, interval: float) -> None:
    wait = until_tick(now, interval)
    assert 0 < wait <= interval
    # Half of a shorter wait would be lost in the last digit of the time.
    assume(wait > 1e-6)
    assert abs(until_tick(now + wait / 2, interval) + wait / 2 - wait) < 1e-6


async def test_other_tasks_run_while_items_are_made_that_take_long() -> None:
    turns = 0

    async def count() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    def items() -> Iterator[int]:
        for number in range(20):
            end = time.monotonic() + 0.002
            while time.monotonic() < end:
                pass
            yield number

    counting = asyncio.create_task(count())
    assert await in_slices(items()) == list(range(20))
    counting.cancel()
    assert turns >= 20


async def test_long_work_rests_after_a_slice_while_other_work_goes_first() -> None:
    slices = Slices(lambda: True)
    for _ in range(3):
        began = time.monotonic()
        while time.monotonic() - began < 0.0015:
            """Work for longer than a slice."""
        paused = time.monotonic()
        await slices.pause()
        assert time.monotonic() - paused >= 0.9 * REST_S


async def test_long_work_lets_others_run_after_a_slice() -> None:
    turns: list[int] = []
    slices = Slices()
    await slices.pause()
    other = asyncio.create_task(note(turns))
    while not turns:
        await slices.pause()
    await other


async def note(turns: list[int]) -> None:
    turns.append(1)
