"""What goes wrong in work in the background: defects, which are counted and isolated, and tasks that hang."""

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any

import structlog

from edge.foundation.errors import Unavailable


class Isolated:
    """Context that logs a defect as `event` and ends its block; Unavailable and cancellation pass.

    What follows the block handles the failed item.
    """

    def __init__(self, logger: Any, event: str, **fields: object) -> None:
        self._logger = logger
        self._event = event
        self._fields = fields

    def __enter__(self) -> None:
        """Enter the block."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> bool:
        """Log a defect; return whether there was one."""
        if not isinstance(error, Exception) or isinstance(error, Unavailable):
            return False
        self._logger.error(self._event, exc_info=error, **self._fields)
        return True


logger = structlog.get_logger(__name__)


class Defects:
    """The defects of one gateway since its start; `counts` has those of each background task by its name.

    A task that fails again and again is logged once, until it works again.

        try:
            await look()
        except Exception as error:  # a defect in one task must not end the jobs
            defects.record("sessions", error)
        else:
            defects.end("sessions")
    """

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._failing: dict[str, str] = {}

    def record(self, task: str, error: Exception) -> None:
        """Count a defect of a task, which fails from now on."""
        self.counts[task] += 1
        if task not in self._failing:
            logger.error("background task failed, retrying", task=task, exc_info=error)
        self._failing[task] = type(error).__name__

    def end(self, task: str) -> None:
        """Record that a task works."""
        if self._failing.pop(task, None):
            logger.info("background task works again", task=task)

    @property
    def failing(self) -> int:
        """The number of tasks that fail now."""
        return len(self._failing)

    def problems(self) -> Iterable[str]:
        """Yield a sentence when tasks fail now."""
        if self._failing:
            names = ", ".join(f"{task} ({kind})" for task, kind in sorted(self._failing.items()))
            yield f"background task fails: {names}"


_PATIENCE_S = 25.0
"""Longer than the longest wait of such a task plus the timeout of a call to the store."""


class Heartbeat:
    """Records when each critical task, known by its name, last called the store, successfully or not.

    A task hangs after `patience_s` seconds without a call. A task that has ended does not hang.
    """

    def __init__(self, patience_s: float = _PATIENCE_S, clock: Callable[[], float] = time.monotonic) -> None:
        self._patience_s = patience_s
        self._clock = clock
        self._last: dict[str, tuple[asyncio.Task[object], float] | None] = {}

    def expect(self, names: Iterable[str]) -> None:
        """Watch tasks of these names, each from its first beat."""
        self._last |= dict.fromkeys(names)

    def beat(self) -> None:
        """Record a beat of the calling task."""
        task = asyncio.current_task()
        if task and task.get_name() in self._last:
            self._last[task.get_name()] = task, self._clock()

    def stalled(self) -> list[str]:
        """Name the tasks that hang."""
        now = self._clock()
        beats = [(name, *beat) for name, beat in self._last.items() if beat]
        return [name for name, task, at in beats if now - at > self._patience_s and not task.done()]
