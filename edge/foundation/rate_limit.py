"""Limits the rate of what a remote peer can cause: actions, attempts, lines of the log, work and notices.

Clocks return monotonic seconds.
"""

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import TypeAlias

from structlog.typing import FilteringBoundLogger

from edge.foundation.backoff import doubled

FailureKey: TypeAlias = tuple[str, ...]

_MOST_LIMITS = 100
_MOST_KEYS = 200
"""Keys are bounded, as a remote peer may choose those by which it is limited."""


def _unreported(*_: object) -> None:
    """Ignore what was declined."""


class RateLimit:
    """Admits `most` actions in any `seconds`.

    `report` is called with how many were declined when an action is admitted again, at most once in `seconds`.
    """

    def __init__(
        self,
        most: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[int], None] = _unreported,
    ) -> None:
        self._seconds = seconds
        self._clock = clock
        self._report = report
        self._admitted: deque[float] = deque(maxlen=most)
        self._declined = 0
        self._reported_at = float("-inf")

    def try_acquire(self) -> bool:
        """Return whether an action is admitted now, and count it."""
        now = self._clock()
        if len(self._admitted) == self._admitted.maxlen and now - self._admitted[0] < self._seconds:
            self._declined += 1
            return False
        self._admitted.append(now)
        if self._declined and now - self._reported_at >= self._seconds:
            declined, self._declined, self._reported_at = self._declined, 0, now
            self._report(declined)
        return True


class LimitByKey:
    """A RateLimit for each key, such as a user, so that one does not use up what others may.

    Keys beyond the first hundred share one. `report` is called with the key and how many of its actions were declined.
    """

    def __init__(
        self,
        most: int,
        seconds: float,
        clock: Callable[[], float] = time.monotonic,
        report: Callable[[str, int], None] = _unreported,
    ) -> None:
        self._most = most
        self._seconds = seconds
        self._clock = clock
        self._report = report
        self._limits: dict[str, RateLimit] = {}

    def try_acquire(self, key: str) -> bool:
        """Return whether an action of a key is admitted now, and count it."""
        key = key if key in self._limits or len(self._limits) < _MOST_LIMITS else ""
        if (limit := self._limits.get(key)) is None:
            limit = RateLimit(self._most, self._seconds, self._clock, partial(self._report, key))
            self._limits[key] = limit
        return limit.try_acquire()


class Allowance:
    """What may be used of something, such as seconds of work: `per_s` each second, saved up to `most`."""

    def __init__(self, per_s: float, most: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_s = per_s
        self._most = most
        self._clock = clock
        self._left = most
        self._updated_at = clock()

    def wait_s(self) -> float:
        """Return the seconds until what was used is allowed; 0 when it is now."""
        now = self._clock()
        self._left = min(self._left + (now - self._updated_at) * self._per_s, self._most)
        self._updated_at = now
        return max(0.0, -self._left / self._per_s)

    def use(self, amount: float = 1.0) -> float:
        """Count what is used, and return the seconds until that much is allowed."""
        self.wait_s()
        self._left -= amount
        return self.wait_s()


class FailureThrottle:
    """The wait after failures of a key: none for its free ones, then one second, doubled by each further failure.

    Of more than 1,000 keys the oldest are forgotten.
    """

    LONGEST_S = 900.0
    MOST = 1000

    def __init__(
        self, clock: Callable[[], float], free: Callable[[FailureKey], int], forget_s: float = LONGEST_S
    ) -> None:
        """Allow each key its `free` attempts, and forget its failures `forget_s` after the end of their wait."""
        self._clock = clock
        self._free = free
        self.forget_s = forget_s
        self._failures: dict[FailureKey, tuple[int, float]] = {}

    def __contains__(self, key: FailureKey) -> bool:
        """Return whether failures of a key are known."""
        return key in self._failures

    def failures_of(self, key: FailureKey) -> int:
        """Return how many failures of a key are known."""
        return self._failures[key][0] if key in self._failures else 0

    def wait_s(self, key: FailureKey) -> float:
        """Return the seconds that a key still waits."""
        return max(0.0, self._failures[key][1] - self._clock()) if key in self._failures else 0.0

    def is_blocked(self, keys: Iterable[FailureKey]) -> bool:
        """Return whether an attempt that counts for some keys is refused unchecked."""
        return any(self.wait_s(key) > 0 for key in keys)

    def failed(self, keys: Iterable[FailureKey]) -> None:
        """Record a failure for each of some keys."""
        now = self._clock()
        for key in keys:
            count, until = self._failures.pop(key, (0, now))
            count = 1 if until + self.forget_s < now else count + 1  # an old failure has expired
            self._failures[key] = count, now + self._wait_after(count, key)
        while len(self._failures) > self.MOST:
            del self._failures[next(iter(self._failures))]

    def add_to(self, stored: int, key: FailureKey) -> None:
        """Count the failure that was recorded last after those that another process has stored."""
        self._failures[key] = stored + 1, self._clock() + self._wait_after(stored + 1, key)

    def forget(self, key: FailureKey) -> None:
        """Forget the failures of a key: an attempt has succeeded, or they have expired."""
        self._failures.pop(key, None)

    def restore(self, key: FailureKey, failures: int, wait_s: float) -> None:
        """Restore the failures of a key as they were stored."""
        self._failures[key] = failures, self._clock() + min(wait_s, self.LONGEST_S)

    def _wait_after(self, count: int, key: FailureKey) -> float:
        free = self._free(key)
        return doubled(1.0, count - free, self.LONGEST_S) if count >= free else 0.0


class LogThrottle:
    """Logs the first fault of each key at once, then at most one line per key and interval.

    So a flood of faults does not fill the disk. Times are in seconds. Of more than 200 keys the oldest are forgotten;
    all of them share one further limit.
    """

    def __init__(
        self,
        logger: FilteringBoundLogger,
        interval: float = 60.0,
        most_lines: int = 60,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._logger = logger
        self._interval = interval
        self._clock = clock
        self._lines = RateLimit(most_lines, interval, clock, self._report_unlogged)
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def warning(self, event: str, key: str, **fields: object) -> None:
        """Log a fault as a warning; `repeated` is the number of faults of this key since the last line."""
        self._log(self._logger.warning, event, key, fields)

    def error(self, event: str, key: str, **fields: object) -> None:
        """Log a fault as an error."""
        self._log(self._logger.error, event, key, fields)

    def info(self, event: str, key: str, **fields: object) -> None:
        """Log what is not a fault, but comes as often as a remote peer sends it."""
        self._log(self._logger.info, event, key, fields)

    def _log(self, log: Callable[..., object], event: str, key: str, fields: Mapping[str, object]) -> None:
        now = self._clock()
        at, repeated = self._seen.pop(key, (None, 0))
        if (at is not None and now - at < self._interval) or not self._lines.try_acquire():
            self._seen[key] = (now if at is None else at, repeated + 1)
        else:
            self._seen[key] = (now, 0)
            counts = {"repeated": repeated} if repeated else {}
            log(event, **fields, **counts)
        if len(self._seen) > _MOST_KEYS:
            self._seen.popitem(last=False)

    def _report_unlogged(self, count: int) -> None:
        self._logger.warning("faults not logged", count=count)
