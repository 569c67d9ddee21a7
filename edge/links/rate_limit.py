"""Limits the rate of actions that a remote peer can cause."""

import time
from collections import deque
from collections.abc import Callable


class WindowLimit:
    """Admits `most` actions in each window of some seconds; then `report` is called with how many were declined."""

    def __init__(
        self, most: int, seconds: float, report: Callable[[int], None], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._report = report
        self._clock = clock
        self._since = clock()
        self._count = 0

    def try_acquire(self) -> bool:
        """Return whether an action is admitted now, and count it."""
        now = self._clock()
        if now - self._since > self._seconds:
            if self._count > self._most:
                self._report(self._count - self._most)
            self._since, self._count = now, 0
        self._count += 1
        return self._count <= self._most


class RateLimit:
    """Admits `most` actions in any `seconds`; `clock` returns monotonic seconds."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._spent: deque[float] = deque(maxlen=most)

    def try_acquire(self) -> bool:
        """Return whether an action is admitted now; if so, count it."""
        now = self._clock()
        if len(self._spent) == self._spent.maxlen and now - self._spent[0] < self._seconds:
            return False
        self._spent.append(now)
        return True
