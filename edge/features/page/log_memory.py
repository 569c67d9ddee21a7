"""Keeps the newest records of the log for the station page."""

import contextlib
import logging
from collections import deque
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from edge.app.logs import journal_entry
from edge.features.page.gateway_models import LogLine

_LINES: Final = 500
_LONGEST_LINE: Final = 500


class LogMemory(logging.Handler):
    """Keeps the newest records of the log in memory, each shortened."""

    def __init__(self, lines: int = _LINES) -> None:
        super().__init__()
        self.lines: deque[LogLine] = deque(maxlen=lines)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep one record."""
        try:
            text, _ = journal_entry(record)
        except Exception:  # noqa: BLE001 - as in every handler: a logging failure must not stop the caller
            self.handleError(record)
            return
        at = datetime.fromtimestamp(record.created, UTC)
        self.lines.append(LogLine(at=at, level=record.levelname.lower(), text=text[:_LONGEST_LINE]))


@contextlib.contextmanager
def remembered_log() -> Iterator[LogMemory]:
    """Keep the newest records of the log for the length of the block."""
    memory, root = LogMemory(), logging.getLogger()
    root.addHandler(memory)
    try:
        yield memory
    finally:
        root.removeHandler(memory)
