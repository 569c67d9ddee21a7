"""The delay doubles up to a maximum; a stable connection resets it."""

import asyncio

from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.backoff import Backoff, delay, delay_after_defects, doubled


@given(attempt=st.integers(0, 10_000))
def test_delay_doubles_up_to_the_maximum_and_is_jittered_by_half(attempt: int) -> None:
    full = min(30.0, 0.1 * 2.0 ** min(attempt, 16))
    assert full / 2 <= delay(attempt, 0.1, 30.0) <= full


def test_delays_are_jittered() -> None:
    assert len({delay(3, 0.1, 30.0) for _ in range(20)}) > 1


async def test_pause_ends_when_it_is_woken() -> None:
    backoff, woken = Backoff(shortest=60.0, longest=60.0, stable=60.0), asyncio.Event()
    asyncio.get_running_loop().call_soon(woken.set)
    async with asyncio.timeout(5):
        await backoff.pause(woken)


async def test_pause_that_nothing_wakes_ends_by_itself() -> None:
    await Backoff(shortest=0.002, longest=0.002, stable=60.0).pause(asyncio.Event())


async def test_backoff_is_reset_after_a_stable_connection() -> None:
    loop = asyncio.get_running_loop()

    async def paused(backoff: Backoff) -> float:
        began = loop.time()
        await backoff.pause()
        return loop.time() - began

    short_lived = Backoff(shortest=0.002, longest=0.1, stable=60.0)
    pauses = [await paused(short_lived) for _ in range(5)]
    assert pauses[4] > 0.032  # 0.002 s doubled five times, and cut by half
    lasting = Backoff(shortest=0.002, longest=10.0, stable=-1.0)
    assert sum([await paused(lasting) for _ in range(20)]) < 5


def test_retry_delay_doubles_up_to_a_limit() -> None:
    assert [delay_after_defects(tries) for tries in range(1, 5)] == [0.1, 0.2, 0.4, 0.8]
    assert delay_after_defects(7) == delay_after_defects(10_000) == 5.0


def test_doubled_delay_has_a_longest() -> None:
    assert [doubled(1.0, times, 5.0) for times in (0, 1, 2, 3, 10_000)] == [1.0, 2.0, 4.0, 5.0, 5.0]
