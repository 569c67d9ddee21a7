"""Shares the event loop: periodic tasks wake together and wake an idle gateway rarely; long work lets others run."""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

_SLICE_S: Final = 0.001
REST_S: Final = 0.003
"""How long a gateway pauses after a slice: a step takes several turns of the event loop, and meets one slice."""

_T = TypeVar("_T")


async def next_tick(interval_s: float) -> None:
    """Wait for the next multiple of an interval on the clock of the event loop.

    Tasks of one interval wake together, and their requests to the store leave in one write.
    """
    await asyncio.sleep(until_tick(asyncio.get_running_loop().time(), interval_s))


def until_tick(now_s: float, interval_s: float) -> float:
    """Return the seconds until the next multiple of an interval: more than none, at most the interval."""
    return interval_s - now_s % interval_s


async def in_slices(items: Iterable[_T], rest_s: float = 0.0) -> list[_T]:
    """Return the items of an iterable that takes work; pause after each millisecond of it, so that other tasks run."""
    found: list[_T] = []
    until = time.monotonic() + _SLICE_S
    for item in items:
        found.append(item)
        if time.monotonic() >= until:
            await asyncio.sleep(rest_s)
            until = time.monotonic() + _SLICE_S
    return found


def _never() -> bool:
    return False


class Slices:
    """Pauses long work that continues at any time: one slice, a turn for others, and a rest while it is asked for.

    `rests` is True while work that goes first is under way: its next turn comes at once then.
    """

    def __init__(self, rests: Callable[[], bool] = _never) -> None:
        self._rests = rests
        self._until = 0.0

    async def pause(self) -> None:
        """Pause if a slice of a millisecond is over."""
        if time.monotonic() < self._until:
            return
        await asyncio.sleep(REST_S if self._rests() else 0)
        self._until = time.monotonic() + _SLICE_S
