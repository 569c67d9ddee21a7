"""Detects critical tasks that hang: each of them calls the store every few seconds."""

import asyncio
import time
from collections.abc import Callable, Iterable

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
