"""Reports the progress of a node that runs in a worker."""

from collections.abc import Callable

_Report = Callable[[int, str], None]


def _nowhere(_percent: int, _message: str) -> None:
    """Ignore a report outside of a worker."""


_report: _Report = _nowhere


def report_to(report: _Report) -> None:
    """Set where progress is reported; for the worker."""
    global _report  # noqa: PLW0603 - one attempt runs at a time in a process
    _report = report


def report_progress(percent: int, message: str = "") -> None:
    """Report progress (0-100) with a message. An attempt that was terminated ends here."""
    _report(max(0, min(100, int(percent))), str(message)[:200])
