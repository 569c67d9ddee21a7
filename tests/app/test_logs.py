"""One format for all log records: text lines, JSON lines, or journal entries with fields."""

import json
import logging
import os
import sys
import uuid
from collections.abc import Iterator

import pytest
import structlog

from edge.app.logs import journal_entry, set_up
from edge.config import LoggingSettings


@pytest.fixture(autouse=True)
def _as_before() -> Iterator[None]:
    root, edge = logging.getLogger(), logging.getLogger("edge")
    before = (root.handlers, root.level, edge.level)
    yield
    root.handlers, root.level, edge.level = before


@pytest.fixture
def ours() -> structlog.stdlib.BoundLogger:
    """A logger of ours that no other test has used."""
    logger: structlog.stdlib.BoundLogger = structlog.get_logger(f"edge.{uuid.uuid4().hex}")
    return logger


def fail() -> None:
    raise ZeroDivisionError


def last_line(capsys: pytest.CaptureFixture[str]) -> str:
    lines = capsys.readouterr().err.splitlines()
    return lines[-1] if lines else ""


def test_records_of_gateway_and_libraries_have_one_json_format(
    ours: structlog.stdlib.BoundLogger, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(LoggingSettings(format="json"))
    ours.info("job started", job="J1", count=3, odd=object)
    record = json.loads(last_line(capsys))
    assert (record["event"], record["job"], record["count"], record["level"]) == ("job started", "J1", 3, "info")
    logging.getLogger("asyncua.server").warning("trouble with %s", "a client")
    of_library = json.loads(last_line(capsys))
    assert (of_library["event"], of_library["logger"]) == ("trouble with a client", "asyncua.server")
    assert of_library.keys() == record.keys() - {"job", "count", "odd"}


def test_library_records_below_warning_are_dropped(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(LoggingSettings(level="debug", format="json"))
    logging.getLogger("asyncua").info("daily business")
    assert last_line(capsys) == ""


@pytest.mark.parametrize(("level", "reported"), [("warning", False), ("info", True), ("debug", True)])
def test_records_below_the_log_level_are_dropped(
    ours: structlog.stdlib.BoundLogger, capsys: pytest.CaptureFixture[str], level: str, *, reported: bool
) -> None:
    set_up(LoggingSettings(level=level, format="json"))  # type: ignore[arg-type]
    ours.info("job started")
    assert bool(last_line(capsys)) is reported


def test_an_exception_has_its_traceback_in_the_same_line(
    ours: structlog.stdlib.BoundLogger, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(LoggingSettings(format="json"))
    try:
        fail()
    except ZeroDivisionError:
        ours.exception("work failed")
    assert "ZeroDivisionError" in json.loads(last_line(capsys))["exception"]


def test_console_format_prints_text_instead_of_json(
    ours: structlog.stdlib.BoundLogger, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(LoggingSettings(format="console"))
    ours.info("job started", job="J1")
    line = last_line(capsys)
    assert "job started" in line
    assert "job=J1" in line
    assert "{" not in line


def handler() -> str:
    (only,) = logging.getLogger().handlers
    return type(only).__name__


def test_journal_is_selected_only_when_stderr_is_the_journal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("systemd")
    stderr = os.fstat(2)
    monkeypatch.setenv("JOURNAL_STREAM", f"{stderr.st_dev}:{stderr.st_ino}")
    set_up(LoggingSettings())
    assert handler() == "_JournalHandler"
    monkeypatch.setenv("JOURNAL_STREAM", f"{stderr.st_dev}:{stderr.st_ino + 1}")
    set_up(LoggingSettings())
    assert handler() == "StreamHandler"


def record(message: object, *arguments: object, level: int = logging.INFO) -> logging.LogRecord:
    return logging.LogRecord("edge.station.worker", level, "worker.py", 1, message, arguments, None)


def test_gateway_record_is_in_the_journal_with_its_fields() -> None:
    reported = {
        "event": "work retried",
        "job": "J1",
        "job-order": 7,
        "level": "warning",
        "logger": "edge.station.worker",
        "timestamp": "2026-01-02T03:04:05Z",
        "_record": "structlog's own",
    }
    message, fields = journal_entry(record(reported, level=logging.WARNING))
    assert message == "work retried (job=J1, job-order=7)"
    ours = {"PRIORITY": "4", "LOGGER": "edge.station.worker", "SYSLOG_IDENTIFIER": "microdcs-edge"}
    assert fields == {"JOB": "J1", "JOB_ORDER": "7", **ours}


def test_library_record_is_in_the_journal_with_its_formatted_message() -> None:
    message, fields = journal_entry(record("cannot do %s", "that", level=logging.ERROR))
    assert message == "cannot do that"
    assert fields["PRIORITY"] == "3"


def test_an_exception_is_in_the_journal_with_its_traceback() -> None:
    of_ours, of_library = record({"event": "work failed", "exc_info": True}), record("work failed")
    try:
        fail()
    except ZeroDivisionError:
        of_library.exc_info = sys.exc_info()
        messages = [journal_entry(failed)[0] for failed in (of_ours, of_library)]
        assert messages[0] == messages[1]
        assert messages[0].startswith("work failed\nTraceback")
        assert "ZeroDivisionError" in messages[0]


def test_custom_library_level_below_warning_has_info_priority() -> None:
    _, fields = journal_entry(record("hm", level=25))
    assert fields["PRIORITY"] == "6"


def test_records_escape_controls_and_hide_local_variables(
    ours: structlog.stdlib.BoundLogger, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(LoggingSettings(format="console"))

    def refuse(password: str) -> None:
        raise ValueError("\x1b[2J" + password[:1])

    try:
        refuse("correct horse"[::-1])
    except ValueError:
        ours.exception("message refused", reason="a\x1b]0;owned\x07b", held={"x": "\x9b2J"})
    reported = capsys.readouterr().err
    assert r"a\x1b]0;owned\x07b" in reported
    assert "ValueError" in reported
    assert not {"\x1b", "\x07", "\x9b"} & set(reported)
    assert "correct horse"[::-1] not in reported


def test_record_with_control_characters_is_readable_in_the_journal() -> None:
    record = logging.makeLogRecord({"name": "edge.x", "levelno": logging.INFO})
    record.msg = {"event": "message refused", "reason": "\x1b[2Jgone"}
    assert journal_entry(record)[0] == r"message refused (reason=\x1b[2Jgone)"
