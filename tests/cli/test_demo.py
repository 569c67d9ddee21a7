"""`edge demo` as people call it: what it prints, how it ends, and that nothing of it is left."""

import os
import pty
import re
import signal
import subprocess
import sys
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

COMMAND = (sys.executable, "-m", "edge", "demo")
DEADLINE_SECONDS = 50


class Traces:
    """What a demo leaves: everything it starts bears a mark in its environment and keeps its files in one place."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._mark = f"DEMO_UNDER_TEST={uuid.uuid4()}"

    @property
    def environment(self) -> Mapping[str, str]:
        name, _, value = self._mark.partition("=")
        plain = {key: value for key, value in os.environ.items() if not key.startswith(("FORCE_COLOR", "TTY_"))}
        return {**plain, name: value, "TMPDIR": str(self.directory), "TERM": "xterm-256color", "COLUMNS": "100"}

    def processes(self) -> list[str]:
        found = []
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                if process.name.isdigit() and self._mark.encode() in (process / "environ").read_bytes():
                    found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        return found

    def files(self) -> list[Path]:
        return list(self.directory.iterdir())


@pytest.fixture
def traces() -> Iterator[Traces]:
    # Not tmp_path: a Unix socket has to have a short path.
    directory = Path("/tmp") / f"t{uuid.uuid4().hex[:8]}"  # noqa: S108
    directory.mkdir()
    yield Traces(directory)
    directory.rmdir()


def start(traces: Traces, *options: str, **further: Any) -> subprocess.Popen[str]:
    further = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **further}
    return subprocess.Popen((*COMMAND, *options), env=traces.environment, text=True, **further)


def wait_for_line(process: subprocess.Popen[str], part: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if part in line:
            return
    raise AssertionError(f"it ended before it said {part!r}")


def assert_nothing_is_left(traces: Traces) -> None:
    assert traces.processes() == []
    assert traces.files() == []


def test_the_demo_runs_a_whole_job_and_leaves_nothing(traces: Traces) -> None:
    process = start(traces)
    output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert errors == ""
    assert process.returncode == 0
    *lines, last = output.splitlines()
    assert re.fullmatch(r"DEMO OK  Ended \(Completed\), 6 steps, 2 commands, \d+ ms", last)
    told = "\n".join(lines)
    assert "command     tighten → wrench  torque_spec 85Nm" in told
    assert "answer      tighten ← wrench  torque 85.2, angle 41.5" in told
    assert "/0:Objects/4:Machines/8:station-1/4:MachineryBuildingBlocks/6:JobManagement" in told
    assert told.count("AXLE-0001  Ended (Completed)") == 2
    assert_nothing_is_left(traces)


def test_the_demo_draws_its_table_on_a_terminal(traces: Traces) -> None:
    ours, theirs = pty.openpty()
    process = start(traces, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    screen = b""
    # Reading from a terminal whose other side is closed is an error on Linux.
    with suppress(OSError):
        while piece := os.read(ours, 65536):
            screen += piece
    os.close(ours)
    assert process.wait(timeout=DEADLINE_SECONDS) == 0
    text = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", screen.decode())
    assert "╭─ AXLE-0001  Ended (Completed) ─" in text
    assert text.splitlines()[-1].startswith("DEMO OK")
    assert_nothing_is_left(traces)


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_demo_that_is_told_to_stop_in_the_middle_leaves_nothing(
    traces: Traces, number: signal.Signals, status: int
) -> None:
    process = start(traces)
    wait_for_line(process, "command")
    assert len(traces.processes()) >= 5
    process.send_signal(number)
    process.send_signal(number)
    output, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == status
    assert "DEMO OK" not in output
    assert_nothing_is_left(traces)


def test_a_kept_demo_names_its_addresses_and_ends_with_ctrl_c(traces: Traces) -> None:
    process = start(traces, "--keep")
    wait_for_line(process, "DEMO OK")
    wait_for_line(process, "Ctrl-C")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    assert_nothing_is_left(traces)


def test_a_gateway_that_cannot_start_is_named_with_its_reason(traces: Traces) -> None:
    # Too long for the Unix socket of its store.
    long = traces.directory / ("x" * 100)
    long.mkdir()
    process = subprocess.run(
        COMMAND,
        env={**traces.environment, "TMPDIR": str(long)},
        capture_output=True,
        text=True,
        check=False,
        timeout=DEADLINE_SECONDS,
    )
    assert process.returncode == 1
    assert "edge: the gateway ended with status 2:\n  edge: [redis] url: " in process.stderr
    assert "Traceback" not in process.stderr
    assert "DEMO OK" not in process.stdout
    long.rmdir()
    assert_nothing_is_left(traces)
