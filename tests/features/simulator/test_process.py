"""Tests of child processes: readiness, log and end."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from edge.features.simulator.process import open_process
from edge.foundation.errors import Unavailable
from tests.conftest import WaitUntil

FOR_EVER = "import time\nprint('at work', flush=True)\ntime.sleep(600)"


def python(code: str) -> tuple[str, ...]:
    return sys.executable, "-c", code


def nobody(failure: Unavailable) -> None:
    raise AssertionError(failure)


def is_alive(pid: int) -> bool:
    try:
        # A zombie still accepts signals; its command line is empty.
        return bool(Path(f"/proc/{pid}/cmdline").read_bytes())
    except FileNotFoundError:
        return False


async def test_process_is_ready_by_its_output_and_ends_with_its_context(tmp_path: Path) -> None:
    async with asyncio.timeout(60), open_process("p", python(FOR_EVER), tmp_path / "log", "at work", nobody) as process:
        await process.wait_until_ready()
        assert process.last_lines() == "  at work"


async def test_early_end_is_reported_with_the_last_log_lines(tmp_path: Path) -> None:
    failures: asyncio.Queue[Unavailable] = asyncio.Queue()
    code = "import sys\nfor n in range(50): print('line', n, flush=True)\nsys.exit('the disk is full')"
    async with asyncio.timeout(60), open_process("p", python(code), tmp_path / "log", "never", failures.put_nowait):
        failure = await failures.get()
    assert failure.message.startswith("the p ended with status 1:\n")
    assert failure.message.endswith("\n  the disk is full")
    assert "line 49" in failure.message
    assert "line 1\n" not in failure.message


async def test_an_end_by_a_signal_is_named(tmp_path: Path) -> None:
    failures: asyncio.Queue[Unavailable] = asyncio.Queue()
    code = "import os\nos.kill(os.getpid(), 9)"
    async with asyncio.timeout(60), open_process("p", python(code), tmp_path / "log", "never", failures.put_nowait):
        assert (await failures.get()).message.startswith("the p was ended by SIGKILL")


async def test_child_processes_end_with_their_process(tmp_path: Path, wait_until: WaitUntil) -> None:
    code = f"import subprocess, sys\nchild = subprocess.Popen([sys.executable, '-c', {FOR_EVER!r}])\nprint(child.pid)\n"
    log = tmp_path / "log"
    async with asyncio.timeout(60), open_process("p", python(code), log, "at work", lambda _: None) as process:
        await process.wait_until_ready()
        child = int(next(line for line in log.read_text().split() if line.isdigit()))
        assert is_alive(child)
    await wait_until(lambda: not is_alive(child))


async def test_process_that_ignores_sigterm_is_killed(tmp_path: Path) -> None:
    deaf = f"import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n{FOR_EVER}"
    log = tmp_path / "log"
    async with asyncio.timeout(60), open_process("p", python(deaf), log, "at work", nobody, stop_s=0.1) as process:
        await process.wait_until_ready()


async def test_edge_variables_are_not_passed_to_the_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGE_MQTT__URL", "mqtt://plant.example.com")
    code = "import os\nprint([name for name in os.environ if name.startswith('EDGE_')], flush=True)\nprint('done')"
    ended = asyncio.Event()

    def end(_: Unavailable) -> None:
        ended.set()

    async with asyncio.timeout(60), open_process("p", python(code), tmp_path / "log", "done", end) as process:
        await ended.wait()
        assert process.last_lines() == "  []\n  done"
    assert "EDGE_MQTT__URL" in os.environ
