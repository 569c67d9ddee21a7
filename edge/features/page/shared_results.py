"""Shares what is read for a page among the pages that are open at the same time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Any, Final, TypeVar

_KEPT_S: Final = 1.0
_MOST: Final = 64
_LONGEST_REST_S: Final = 0.5

_T = TypeVar("_T")


class SharedResults:
    """Keeps results until the next change, at most a second: fifty pages that follow a job cost as much as one.

    Results are made one after the other with rests between them, so that many pages do not slow jobs. A job that runs
    changes all the time: the more pages are open, the longer a request waits for others that share its result.
    """

    def __init__(
        self,
        changes: Callable[[], int],
        share: float,
        interval: Callable[[], float] = lambda: 0.0,
        clock: Callable[[], float] = time.monotonic,
        work: Callable[[], float] = time.thread_time,
        rest: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Discard the results at each change; `changes` returns the number of published changes.

        Rests keep the making to a `share` of the processor; `work` returns the seconds that the thread has worked. The
        result of a key is made again after `interval` seconds at the earliest.
        """
        self._changes = changes
        self._rest_factor = 1 / share - 1
        self._interval = interval
        self._clock = clock
        self._work = work
        self._rest = rest
        self._making = asyncio.Lock()
        self._rested_at = clock()
        self._locks: dict[Hashable, asyncio.Lock] = {}
        self._results: dict[Hashable, tuple[int, float, Any]] = {}

    async def get(self, key: Hashable, make: Callable[[], Awaitable[_T]]) -> _T:
        """Return the result of a key; the first caller after a change makes it, the others wait for it."""
        wanted = self._changes()
        async with self._locks.setdefault(key, asyncio.Lock()):
            changes, made_at, result = self._results.get(key, (-1, -_KEPT_S, None))
            if changes >= wanted and self._clock() < made_at + _KEPT_S:
                return result  # type: ignore[no-any-return]
            await self._rest_until(made_at + self._interval())
            try:
                begun, made = await self._make(make)
                self._keep(key, begun, made)
            finally:
                # Addresses of nothing must not fill the memory.
                if key not in self._results:
                    self._locks.pop(key, None)
            return made

    async def _make(self, make: Callable[[], Awaitable[_T]]) -> tuple[int, _T]:
        """Return a new result, made after the rest, with the number of changes before it."""
        async with self._making:
            await self._rest_until(self._rested_at)
            changes, begun = self._changes(), self._work()
            try:
                return changes, await make()
            finally:
                rest = (self._work() - begun) * self._rest_factor
                self._rested_at = self._clock() + min(rest, _LONGEST_REST_S)

    async def _rest_until(self, at: float) -> None:
        if (left := at - self._clock()) > 0:
            await self._rest(left)

    def _keep(self, key: Hashable, changes: int, made: object) -> None:
        self._results.pop(key, None)
        self._results[key] = changes, self._clock(), made
        while len(self._results) > _MOST:
            oldest = next(iter(self._results))
            del self._results[oldest]
            self._locks.pop(oldest, None)
