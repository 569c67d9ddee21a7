"""Computes the ticks at which the periodic tasks of a process wake together, so that an idle gateway wakes rarely."""

import asyncio


async def next_tick(interval_s: float) -> None:
    """Wait for the next multiple of an interval on the clock of the event loop.

    Tasks of one interval wake together, and their requests to the store leave in one write.
    """
    await asyncio.sleep(until_tick(asyncio.get_running_loop().time(), interval_s))


def until_tick(now_s: float, interval_s: float) -> float:
    """Return the seconds until the next multiple of an interval: more than none, at most the interval."""
    return interval_s - now_s % interval_s
