"""Computes the delays between attempts: to connect, and at work that meets a defect; and how often that is tried."""

import asyncio
import contextlib
import random

_MOST_DOUBLINGS = 30
"""More would only overflow."""
_CHANCE = random.SystemRandom()


def doubled(shortest: float, times: int, longest: float) -> float:
    """Return the shortest delay, doubled some times, but not beyond the longest."""
    return min(shortest * 2.0 ** min(times, _MOST_DOUBLINGS), longest)


def delay(attempt: int, shortest: float, longest: float) -> float:
    """Return the delay before an attempt, in seconds: it doubles, with jitter against simultaneous clients."""
    return doubled(shortest, attempt, longest) * _CHANCE.uniform(0.5, 1.0)


class Backoff:
    """The pauses between attempts to connect, the first of which begins now.

    Times are in seconds. After a connection that lasted longer than `stable` the delays begin again with the shortest.
    """

    def __init__(self, shortest: float, longest: float, stable: float) -> None:
        self._shortest = shortest
        self._longest = longest
        self._stable = stable
        self._attempt = 0
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()

    async def pause(self, woken: asyncio.Event | None = None) -> None:
        """Wait before the next attempt, at most until `woken` is set; the attempt begins when this returns."""
        lasted = self._loop.time() - self._began > self._stable
        self._attempt = 0 if lasted else self._attempt + 1
        pause_s = delay(self._attempt, self._shortest, self._longest)
        if woken is None:
            await asyncio.sleep(pause_s)
        else:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause_s):
                    await woken.wait()
        self._began = self._loop.time()


MOST_TRIES = 5
"""The most attempts at work that meets a defect, which may be temporary. Then the work becomes a dead letter."""

_FIRST_S = 0.1
_MOST_S = 5.0


def delay_after_defects(tries: int) -> float:
    """Return the delay after a number of attempts, at least one, in seconds."""
    return doubled(_FIRST_S, tries - 1, _MOST_S)
