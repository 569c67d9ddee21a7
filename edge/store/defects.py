"""Counts the defects of background work, and names the work that fails now."""

from collections import Counter
from collections.abc import Iterable

import structlog

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
