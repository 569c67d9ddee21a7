"""Knows whether the tasks on which everything depends go on: each of them asks the store every few seconds."""

import asyncio
from collections.abc import Iterable

_PATIENCE_S = 25.0
"""Longer than the longest wait of such a task with the time that a store may take to answer."""


class Heartbeat:
    """Notes when each critical task, known by its name, last asked the store, be it in vain.

    A task that has ended is silent rightly: who started it hears how it ended.
    """

    def __init__(self) -> None:
        self._last: dict[str, tuple[asyncio.Task[object], float] | None] = {}

    def expect(self, names: Iterable[str]) -> None:
        """From its first beat on, expect tasks of these names to go on."""
        self._last |= dict.fromkeys(names)

    def beat(self) -> None:
        """Note that the task that calls goes on."""
        task = asyncio.current_task()
        if task and task.get_name() in self._last:
            self._last[task.get_name()] = task, asyncio.get_running_loop().time()

    def stalled(self) -> list[str]:
        """Name the tasks that hang."""
        now = asyncio.get_running_loop().time()
        beats = [(name, *beat) for name, beat in self._last.items() if beat]
        return [name for name, task, at in beats if now - at > _PATIENCE_S and not task.done()]
