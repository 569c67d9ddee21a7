"""`edge demo` called from the command line: its output, its exit status, and the removal of its files."""

import asyncio
import os
import pty
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from edge.links.host_addresses import free_port
from tests.opcua_client import patient_client

DEADLINE_SECONDS = 180

pytestmark = [pytest.mark.timeout(240), pytest.mark.slow]


class Traces:
    """What demos leave: processes with a mark in their environment, temporary files, and charts elsewhere."""

    def __init__(self, directory: Path, charts: Path) -> None:
        self.directory = directory
        self.charts = charts
        self.demos: list[subprocess.Popen[str]] = []
        self._mark = f"DEMO_UNDER_TEST={uuid.uuid4()}"

    def start(self, *options: str, temporary: Path | None = None, terminal: int | None = None) -> subprocess.Popen[str]:
        """Start a demo; its output goes to pipes where no terminal is given."""
        output = subprocess.PIPE if terminal is None else terminal
        mark, _, value = self._mark.partition("=")
        log_to_stderr = {
            key: value for key, value in os.environ.items() if key not in {"FORCE_COLOR", "TTY_COMPATIBLE"}
        }
        demo = subprocess.Popen(
            (sys.executable, "-m", "edge", "demo", *options),
            cwd=self.charts,
            env={**log_to_stderr, mark: value, "TMPDIR": str(temporary or self.directory), "TERM": "xterm-256color"},
            text=True,
            stdin=terminal,
            stdout=output,
            stderr=output,
        )
        self.demos.append(demo)
        return demo

    def processes(self) -> list[int]:
        """Find the processes that bear the mark."""
        found = []
        for process in Path("/proc").iterdir():
            with suppress(OSError):
                if process.name.isdigit() and self._mark.encode() in (process / "environ").read_bytes():
                    found.append(int(process.name))
        return found

    def assert_nothing_is_left(self) -> None:
        """Check for processes and files."""
        assert self.processes() == []
        assert list(self.directory.iterdir()) == []

    def wipe(self) -> None:
        """Clear away what a failed test has left."""
        for process in self.processes():
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        for demo in self.demos:
            demo.communicate()
        shutil.rmtree(self.directory)


@pytest.fixture
def traces(tmp_path: Path) -> Iterator[Traces]:
    # Not below tmp_path: a Unix socket has to have a short path.
    traces = Traces(Path(tempfile.mkdtemp(prefix="t-")), tmp_path)
    yield traces
    traces.wipe()


def wait_for_line(process: subprocess.Popen[str], part: str) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        if part in line:
            return
    raise AssertionError(f"it ended before it said {part!r}")


def test_demo_runs_a_complete_job_and_leaves_no_process_or_file(traces: Traces) -> None:
    process = traces.start()
    output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert errors == ""
    assert process.returncode == 0
    *lines, last = output.splitlines()
    assert re.fullmatch(r"DEMO OK  Ended \(Completed\), 6 steps, 2 commands, \d+ ms", last)
    reported = "\n".join(lines)
    assert "command     tighten → wrench  torque_spec 85Nm" in reported
    assert "answer      tighten ← wrench  torque 85.2, angle 41.5" in reported
    assert "/0:Objects/4:Machines/8:station-1/4:MachineryBuildingBlocks/6:JobManagement" in reported
    assert reported.count("AXLE-0001  Ended (Completed)") == 2
    chart = traces.charts / "edge-demo.svg"
    assert f"sequential function chart: {chart}" in reported
    assert "job AXLE-0001 in station-1: completed" in chart.read_text()
    traces.assert_nothing_is_left()


def test_demo_runs_with_opcua_devices(traces: Traces) -> None:
    process = traces.start("--devices", "opcua")
    output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert errors == ""
    assert process.returncode == 0
    *lines, last = output.splitlines()
    assert re.fullmatch(r"DEMO OK  Ended \(Completed\), 6 steps, 4 commands, \d+ ms", last)
    reported = "\n".join(lines)
    assert "command     tighten → wrench  joining_process_id rear axle 85Nm" in reported
    assert "answer      tighten ← wrench  evaluation OK, torque 85.2 N·m, angle 41.5 °" in reported
    assert "answer      camera_qa ← camera  result_state Completed, content [True]" in reported
    assert reported.count("AXLE-0001  Ended (Completed)") == 2
    assert (
        "tighten        evaluation OK, process rear axle 85Nm, torque 85.2 N·m, angle 41.5 °, result_id T2" in reported
    )
    traces.assert_nothing_is_left()


@pytest.mark.long  # tests/features/simulator/test_demo_view.py checks the table on a terminal without a demo
def test_the_demo_draws_its_table_on_a_terminal(traces: Traces) -> None:
    ours, theirs = pty.openpty()
    process = traces.start(terminal=theirs)
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
    traces.assert_nothing_is_left()


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_demo_stopped_by_a_signal_leaves_no_process_or_file(
    traces: Traces, number: signal.Signals, status: int
) -> None:
    process = traces.start()
    wait_for_line(process, "command")
    assert len(traces.processes()) >= 5
    process.send_signal(number)
    process.send_signal(number)
    output, _ = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == status
    assert "DEMO OK" not in output
    traces.assert_nothing_is_left()


def test_running_demo_prints_its_addresses_and_ends_with_ctrl_c(traces: Traces) -> None:
    port = free_port()
    process = traces.start("--keep", "--listen", "127.0.0.1", "--port", str(port), "--chart", "/proc/chart.svg")
    wait_for_line(process, "/proc/chart.svg: cannot be written")
    wait_for_line(process, "DEMO OK")
    wait_for_line(process, f"open opc.tcp://127.0.0.1:{port} in UaExpert")
    wait_for_line(process, "Ctrl-C")
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    traces.assert_nothing_is_left()


@pytest.mark.parametrize("scene", ["telemetry", pytest.param("flows", marks=pytest.mark.long)])
def test_kept_scene_serves_its_tags_over_opcua(traces: Traces, scene: str) -> None:
    """It opened no OPC UA server and said nothing about it."""
    port = free_port()
    process = traces.start("--scene", scene, "--keep", "--port", str(port))
    wait_for_line(process, f"open opc.tcp://127.0.0.1:{port} in UaExpert")
    assert "Gateway" in asyncio.run(objects_of(f"opc.tcp://127.0.0.1:{port}"))
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 0
    traces.assert_nothing_is_left()


async def objects_of(endpoint: str) -> list[str]:
    async with patient_client(endpoint) as client:
        return [(await node.read_browse_name()).Name for node in await client.nodes.objects.get_children()]


def test_demo_reports_why_a_gateway_cannot_start(traces: Traces) -> None:
    # Too long for the Unix socket of its store.
    long = traces.directory / ("x" * 100)
    long.mkdir()
    process = traces.start(temporary=long)
    output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert process.returncode == 1
    assert "edge: the gateway ended with status 2:\n" in errors
    assert "\n  edge: [redis] url: " in errors
    assert "Traceback" not in errors
    assert "DEMO OK" not in output
    long.rmdir()
    traces.assert_nothing_is_left()


def test_telemetry_scene_shows_one_alarm_from_sensor_to_mes(traces: Traces) -> None:
    process = traces.start("--scene", "telemetry")
    output, errors = process.communicate(timeout=DEADLINE_SECONDS)
    assert errors == ""
    assert process.returncode == 0
    *lines, last = output.splitlines()
    pattern = (
        r"DEMO OK  125 samples, 1 alarm: raised, escalated, acknowledged, eased, cleared; at the MES within \d+ ms"
    )
    assert re.fullmatch(pattern, last)
    reported = "\n".join(lines)
    assert "rule        above 80 °C for 0.5 s: severity 500; above 95 °C: 800" in reported
    assert re.search(r"sample      wrench.temperature = 65.\d °C", reported)
    assert re.search(r"alarm       raised        severity 500  wrench.temperature has 8\d.\d °C", reported)
    assert "alarm       acknowledged  severity 800  by shift leader: fan replaced" in reported
    traces.assert_nothing_is_left()


@pytest.mark.parametrize(
    ("scene", "repeated"),
    [("job", "results  see which parts are not OK"), ("telemetry", "raised        severity 500")],
)
def test_scene_is_repeated_while_the_page_is_served(scene: str, repeated: str, traces: Traces) -> None:
    """The page showed what was over, and nothing changed on it."""
    process = traces.start("--scene", scene, "--page")
    wait_for_line(process, "log in as demo")
    wait_for_line(process, repeated)
    process.send_signal(signal.SIGINT)
    assert process.wait(DEADLINE_SECONDS) == 0
    traces.assert_nothing_is_left()
