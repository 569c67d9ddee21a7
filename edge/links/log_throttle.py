"""Logs repeated faults at intervals, with their number, so that a flood of faults does not fill the disk."""

import time
from collections import OrderedDict
from collections.abc import Callable, Mapping

from structlog.typing import FilteringBoundLogger

_MOST_KEYS = 200


class LogThrottle:
    """Logs the first fault of each key at once, then at most one line per key and interval.

    Times are in seconds. Of more than 200 keys the oldest are forgotten; all of them share one further limit, because a
    remote peer may choose the keys.
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
        self._most_lines = most_lines
        self._clock = clock
        self._seen: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self._lines = 0
        self._since = clock()
        self._suppressed = 0

    def warning(self, event: str, key: str, **fields: object) -> None:
        """Log a fault as a warning; `repeated` is the number of faults of this key since the last line."""
        self._report(self._logger.warning, event, key, fields)

    def error(self, event: str, key: str, **fields: object) -> None:
        """Log a fault as an error."""
        self._report(self._logger.error, event, key, fields)

    def info(self, event: str, key: str, **fields: object) -> None:
        """Log what is not a fault, but comes as often as a remote peer sends it."""
        self._report(self._logger.info, event, key, fields)

    def _report(self, log: Callable[..., object], event: str, key: str, fields: Mapping[str, object]) -> None:
        now = self._clock()
        at, repeated = self._seen.pop(key, (None, 0))
        if (at is not None and now - at < self._interval) or not self._is_line_left(now):
            self._seen[key] = (now if at is None else at, repeated + 1)
            self._suppressed += 1
        else:
            self._seen[key] = (now, 0)
            self._lines += 1
            counts = {"repeated": repeated} if repeated else {}
            log(event, **fields, **counts)
        if len(self._seen) > _MOST_KEYS:
            self._seen.popitem(last=False)

    def _is_line_left(self, now: float) -> bool:
        if now - self._since >= self._interval:
            if self._lines >= self._most_lines:
                self._logger.warning("faults not logged", count=self._suppressed)
            self._since, self._lines, self._suppressed = now, 0, 0
        return self._lines < self._most_lines
