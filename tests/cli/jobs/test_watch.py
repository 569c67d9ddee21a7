"""`edge jobs watch` follows a job to its end: lines in a pipe, the running chart on a terminal."""

import asyncio
import fcntl
import itertools
import json
import os
import pty
import re
import signal
import struct
import sys
import termios
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from edge.model.job_state import Cause, JobState
from edge.station.equipment import EquipmentAnswer
from tests.cli.calling import Edge
from tests.station.plant import FakeEquipment, Plant, obliging, order, until_true

pytestmark = pytest.mark.slow


class Terminal:
    """A terminal with `edge jobs watch` on it."""

    def __init__(self, ours: int, process: asyncio.subprocess.Process) -> None:
        self.screen = ""
        self.process = process
        self._ours = ours

    def read(self) -> str:
        """Return all that was drawn so far, without colours and movements."""
        # Reading from a terminal whose other side is closed is an error on Linux.
        try:
            while piece := os.read(self._ours, 65536):
                self.screen += re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", piece.decode(errors="replace"))
        except OSError:
            pass
        return self.screen


@asynccontextmanager
async def terminal(settings_file: Path, *arguments: str) -> AsyncIterator[Terminal]:
    ours, theirs = pty.openpty()
    os.set_blocking(ours, False)
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    command = (sys.executable, "-m", "edge", "jobs", "watch", *arguments, "--settings", str(settings_file))
    environment = {**os.environ, "TERM": "xterm-256color"}
    process = await asyncio.create_subprocess_exec(
        *command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    try:
        yield Terminal(ours, process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)


@asynccontextmanager
async def pipe(settings_file: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """Watch in a process whose output is read here."""
    command = (sys.executable, "-m", "edge", "jobs", "watch", *arguments, "--settings", str(settings_file))
    process = await asyncio.create_subprocess_exec(*command, stdout=PIPE)
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def lines_of(process: asyncio.subprocess.Process, most: int = 100) -> list[str]:
    """Read lines until there are so many, or no more; without their times."""
    assert process.stdout is not None
    lines: list[str] = []
    while len(lines) < most and (line := await process.stdout.readline()):
        lines.append(re.sub(r"^[\d:.]+ +", "", line.decode().rstrip()))
    return lines


async def test_watch_writes_a_line_per_change_to_a_pipe_until_the_job_ends(
    plant: Plant, tool: FakeEquipment, settings_file: Path
) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        async with pipe(settings_file, "J1") as process:
            assert await lines_of(process, 3) == [
                "job     J1  Running",
                "step    ▶ one",
                "action  ▶ a of one: dispatched",
            ]
            tool.replies = obliging
            await plant.answer(tool.commands[0], {"torque": 85.2})
            assert await lines_of(process) == [
                'action  ✓ a of one: completed  {"torque":85.2}',
                "step    ■ one",
                "step    ▶ two",
                'action  ✓ b of two: completed  {"ok":true}',
                "job     J1  Ended (Completed)  by Complete",
            ]
            assert await process.wait() == 0


async def test_watch_writes_a_json_object_per_change(edge: Edge, plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = lambda command: EquipmentAnswer(command.command_id, error="no bolt")
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.ABORTED)
    answer = await edge("jobs", "watch", "J1", "--json")
    assert answer.exit_code == 1
    objects = [json.loads(line) for line in answer.output.splitlines()]
    assert [value["kind"] for value in objects] == ["step", "action", "state"]
    assert (objects[1]["state"], objects[1]["error"]) == ("failed", "failed: no bolt")
    assert objects[2]["state"] == "Aborted"


async def test_removal_of_a_watched_job_is_reported(plant: Plant, settings_file: Path) -> None:
    await plant.order(Cause.STORE, order("J1"))
    async with pipe(settings_file, "J1") as process:
        assert await lines_of(process, 1) == ["job     J1  NotAllowedToStart (Ready)"]
        await plant.ask(Cause.CANCEL, "J1")
        assert await lines_of(process) == ["job     J1  removed  by Cancel"]
        assert await process.wait() == 1


async def test_watch_shows_the_running_chart_on_a_terminal(
    plant: Plant, tool: FakeEquipment, settings_file: Path
) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        async with terminal(settings_file, "J1") as shown:
            await until_true(lambda: "▶ dispatched" in shown.read())
            tool.replies = obliging
            await plant.answer(tool.commands[0])
            await until_true(lambda: "J1: Ended (Completed)" in shown.read())
            assert await shown.process.wait() == 0
            assert "✓ completed" in shown.read()


async def test_watch_of_all_jobs_runs_until_ctrl_c(plant: Plant, settings_file: Path) -> None:
    await plant.order(Cause.STORE, order("J1"))
    async with terminal(settings_file) as shown:
        await until_true(lambda: "J1" in shown.read())
        await plant.order(Cause.STORE, order("J2"))
        await until_true(lambda: "J2" in shown.read())
        shown.process.send_signal(signal.SIGINT)
        assert await shown.process.wait() == 130
        assert "Traceback" not in shown.read()


async def test_watch_writes_all_changes_of_all_jobs_to_a_pipe(plant: Plant, settings_file: Path) -> None:
    async with pipe(settings_file, "--json") as process:
        first = asyncio.create_task(lines_of(process, 1))
        # There is no signal when it begins to follow; what is stored before is not shown.
        for number in itertools.count(1):
            await plant.order(Cause.STORE, order(f"J{number}"))
            await asyncio.wait({first}, timeout=0.1)
            if first.done():
                break
        assert json.loads((await first)[0])["cause"] == "Store"


async def test_watch_of_a_job_and_a_scope_is_refused(edge: Edge) -> None:
    answer = await edge("jobs", "watch", "J1", "--scope", "station-2")
    assert answer.exit_code == 2
    assert "--scope is for all jobs of a scope" in answer.output
