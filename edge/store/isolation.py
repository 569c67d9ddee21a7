"""Isolates work on one stored item from the others: its defect is logged; an outage of the store still passes."""

from types import TracebackType
from typing import Any

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
