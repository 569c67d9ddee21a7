"""Bounds how often something is done for which a stranger may give cause without end."""

import time
from collections import deque
from collections.abc import Callable


class RateLimit:
    """At most so often in any so many seconds; `clock` gives seconds that only grow."""

    def __init__(self, most: int, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._spent: deque[float] = deque(maxlen=most)

    def try_acquire(self) -> bool:
        """Tell whether it may be done once more just now; if so, that counts."""
        now = self._clock()
        if len(self._spent) == self._spent.maxlen and now - self._spent[0] < self._seconds:
            return False
        self._spent.append(now)
        return True
