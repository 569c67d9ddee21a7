"""Configures structured logs: journal under systemd, text on a terminal, JSON lines elsewhere."""

import importlib.util
import logging
import os
import re
import sys
import traceback
from collections.abc import Mapping
from typing import Literal, assert_never

import structlog
from structlog.typing import EventDict, Processor

from edge.config import LoggingSettings
from edge.foundation.clock_sync import mark_unsynchronised

Format = Literal["console", "json", "journal"]

_STDERR = 2
_SYSLOG_PRIORITY = ((logging.CRITICAL, 2), (logging.ERROR, 3), (logging.WARNING, 4), (logging.INFO, 6), (0, 7))
"""Minimum log level -> priority of syslog(3), highest first."""


class _ProductLogger(structlog.make_filtering_bound_logger(logging.DEBUG)):  # type: ignore[misc]
    """Logs the records of a level and above."""


def set_up(settings: LoggingSettings) -> None:
    """Route records of the product and of libraries to one handler; `settings.level` limits those of the product."""
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_logger_name,
        structlog.stdlib.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        mark_unsynchronised,
    ]
    set_level(settings.level)
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        wrapper_class=_ProductLogger,
        logger_factory=structlog.stdlib.LoggerFactory(),
        cache_logger_on_first_use=True,
    )
    root = logging.getLogger()
    root.handlers = [_handler(_select_format(settings.format), shared)]
    # Libraries log warnings and errors only.
    root.setLevel(logging.WARNING)


def set_level(name: str) -> None:
    """Log records of the product from a level on: `debug`, `info`, `warning` or `error`.

    Loggers are cached with their class: it gets the methods of the level, so that what is not logged costs nothing.
    """
    level = logging.getLevelNamesMapping()[name.upper()]
    for method, function in vars(structlog.make_filtering_bound_logger(level)).items():
        if not method.startswith("__"):
            setattr(_ProductLogger, method, function)
    logging.getLogger("edge").setLevel(level)


def _select_format(wanted: Literal["auto", "console", "json", "journal"]) -> Format:
    if wanted != "auto":
        return wanted
    if _stderr_is_the_journal() and importlib.util.find_spec("systemd"):
        return "journal"
    return "console" if sys.stderr.isatty() else "json"


def _stderr_is_the_journal() -> bool:
    """Return whether JOURNAL_STREAM names stderr (systemd.exec(5)); a desktop terminal inherits the variable."""
    try:
        stderr = os.fstat(_STDERR)
    except OSError:
        return False
    return os.environ.get("JOURNAL_STREAM") == f"{stderr.st_dev}:{stderr.st_ino}"


def _handler(chosen: Format, shared: list[Processor]) -> logging.Handler:
    render: list[Processor]
    match chosen:
        case "journal":
            return _JournalHandler()
        case "console":
            # A rich traceback shows local variables, and with them passwords.
            plain = structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            )
            render = [structlog.processors.format_exc_info, _escape_event, plain]
        case "json":
            render = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer(default=str)]
        case _:
            assert_never(chosen)
    handler = logging.StreamHandler(sys.stderr)
    clean = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    handler.setFormatter(structlog.stdlib.ProcessorFormatter(processors=[clean, *render], foreign_pre_chain=shared))
    return handler


def _escape_event(_logger: object, _method: str, event: EventDict) -> EventDict:
    """Escape control characters: records quote text from equipment, MES and network clients."""
    return {key: escape_controls(value) if isinstance(value, str) else value for key, value in event.items()}


def escape_controls(text: str) -> str:
    r"""Return text with control characters escaped, as in `\x1b`; line breaks stay."""
    return "\n".join(line if line.isprintable() else repr(line)[1:-1] for line in text.split("\n"))


class _JournalHandler(logging.Handler):
    """Writes records with their fields, so that `journalctl JOB=…` finds the records of a job."""

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record to the journal; report failures through `handleError`."""
        from systemd.journal import send  # noqa: PLC0415  an extra, installed where this handler is selected

        try:
            message, fields = journal_entry(record)
            send(message, **fields)
        except Exception:  # noqa: BLE001 - as in every handler: a logging failure must not stop the caller
            self.handleError(record)


def journal_entry(record: logging.LogRecord) -> tuple[str, dict[str, str]]:
    """Return the message and the fields (upper case, systemd.journal-fields(7)) of a record."""
    event: Mapping[str, object] = record.msg if isinstance(record.msg, dict) else {"event": record.getMessage()}
    extra = {key: value for key, value in event.items() if not key.startswith("_")}
    message = str(extra.pop("event", ""))
    for known in ("logger", "level", "timestamp", "exc_info"):
        extra.pop(known, None)
    if extra:
        message = f"{message} ({', '.join(f'{key}={value}' for key, value in extra.items())})"
    exc_info = event.get("exc_info") or record.exc_info
    if exc_info:
        error = sys.exc_info()[1] if exc_info is True else exc_info[1] if isinstance(exc_info, tuple) else exc_info
        if isinstance(error, BaseException):
            message = "\n".join((message, *traceback.format_exception(error)))
    fields = {re.sub(r"[^A-Z0-9]", "_", key.upper()).lstrip("_"): str(value) for key, value in extra.items()}
    priority = next(priority for least, priority in _SYSLOG_PRIORITY if record.levelno >= least)
    ours = {"PRIORITY": str(priority), "LOGGER": record.name, "SYSLOG_IDENTIFIER": "microdcs-edge"}
    # journalctl shows only the size of a message with control characters.
    return escape_controls(message), fields | ours
