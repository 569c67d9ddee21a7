"""The child process of a worker runs one attempt at a time and is killed after the time limit."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio

from edge.features.flows.node_task import ResultKind, TaskResult
from edge.features.flows.worker import WorkerProcess
from tests.features.flows.site_kinds import write_check
from tests.features.flows.test_node_task_messages import TASK


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def process(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[WorkerProcess]:
    """A process that knows the kind `site.check`."""
    found = WorkerProcess(write_check(tmp_path_factory.mktemp("nodes")), 0)
    yield found
    await found.kill()


pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]


async def run(process: WorkerProcess, how: str, *, repeatable: bool = True, **members: Any) -> TaskResult:
    reports: list[int] = []

    async def on_progress(percent: int, _message: str) -> bool:
        reports.append(percent)
        return len(reports) < 3

    task = msgspec.structs.replace(TASK, config={"how": how}, inputs={"x": [1, 2]}, **members)
    return await process.run(task, repeatable=repeatable, on_progress=on_progress)


async def test_attempts_run_one_after_the_other(process: WorkerProcess) -> None:
    for attempt in (1, 2):
        result = await run(process, "adds", attempt=attempt)
        assert (result.kind, result.value, result.memory) == (ResultKind.COMPLETED, 3, attempt)


async def test_failed_attempt_has_its_reason(process: WorkerProcess) -> None:
    assert (await run(process, "fails")).reason == "not good"


async def test_terminated_attempt_ends_at_its_next_progress_report(process: WorkerProcess) -> None:
    assert (await run(process, "waits")).reason == "terminated"


@pytest.mark.parametrize(("repeatable", "kind"), [(True, ResultKind.FAILED), (False, ResultKind.INTERRUPTED)])
async def test_crashed_process_fails_its_attempt(process: WorkerProcess, kind: ResultKind, *, repeatable: bool) -> None:
    result = await run(process, "dies", repeatable=repeatable)
    assert (result.kind, result.reason) == (kind, "the process of the node ended (status 3)")
    assert (await run(process, "adds")).value == 3


async def test_attempt_beyond_its_timeout_is_killed(process: WorkerProcess) -> None:
    async def on_progress(_percent: int, _message: str) -> bool:
        return True

    task = msgspec.structs.replace(TASK, config={"how": "waits"}, inputs={"x": []}, timeout_ms=300)
    result = await process.run(task, repeatable=True, on_progress=on_progress)
    assert (result.kind, result.reason) == (ResultKind.FAILED, "timeout")
    assert (await run(process, "adds")).value == 3


async def test_cancelled_attempt_leaves_no_process(tmp_path: Path) -> None:
    process = WorkerProcess(write_check(tmp_path), 512)
    begun = asyncio.Event()

    async def on_progress(_percent: int, _message: str) -> bool:
        begun.set()
        return True

    task = msgspec.structs.replace(TASK, config={"how": "waits"}, inputs={"x": []})
    running = asyncio.create_task(process.run(task, repeatable=True, on_progress=on_progress))
    async with asyncio.timeout(60):
        await begun.wait()
    child = process.pid
    assert child is not None
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)


async def never(_percent: int, _message: str) -> bool:
    """Fail: no progress is expected."""
    raise AssertionError


@pytest.mark.parametrize(("repeatable", "kind"), [(True, ResultKind.FAILED), (False, ResultKind.INTERRUPTED)])
async def test_attempt_without_progress_is_killed(tmp_path: Path, kind: ResultKind, *, repeatable: bool) -> None:
    process = WorkerProcess(write_check(tmp_path), 0, silence_s=0.3)
    task = msgspec.structs.replace(TASK, config={"how": "hangs"}, inputs={"x": []})
    result = await process.run(task, repeatable=repeatable, on_progress=never)
    assert (result.kind, result.reason, process.pid) == (kind, "no progress for 0.3 s", None)


async def test_memory_leak_of_a_node_replaces_the_process_between_attempts(tmp_path: Path) -> None:
    """A process that comes near its limit is replaced between two attempts."""
    process = WorkerProcess(write_check(tmp_path), 600)
    task = msgspec.structs.replace(TASK, config={"how": "leaks"}, inputs={"x": [1]})
    pids = set()
    for _ in range(8):
        result = await process.run(task, repeatable=True, on_progress=never)
        assert (result.kind, result.reason) == (ResultKind.COMPLETED, "")
        pids.add(process.pid)
    assert len(pids) > 1
    await process.kill()


async def test_attempt_beyond_the_memory_limit_does_not_affect_the_next_attempt(tmp_path: Path) -> None:
    process = WorkerProcess(write_check(tmp_path), 140)
    task = msgspec.structs.replace(TASK, config={"how": "leaks"}, inputs={"x": [1]})
    result = await process.run(task, repeatable=True, on_progress=never)
    assert result.reason == "the node needs more memory than it may have"
    assert process.pid is None
    assert (await run(process, "adds")).value == 3
    await process.kill()


async def test_process_started_by_a_node_is_killed_with_the_node(tmp_path: Path) -> None:
    process = WorkerProcess(write_check(tmp_path), 0)
    started = (await run(process, "spawns")).value
    await process.kill()
    async with asyncio.timeout(60):
        while _state_of(started) not in {"", "Z"}:  # noqa: ASYNC110 - another process ends
            await asyncio.sleep(0.01)


def _state_of(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except OSError:
        return ""


@pytest.mark.parametrize("how", ["forks", "threads", "outlives"])
async def test_forks_and_threads_of_a_node_do_not_affect_other_attempts(tmp_path: Path, how: str) -> None:
    """A fork answered too, and the next attempt got its answer; a thread took the next attempt for its own reply."""

    async def wanted(_percent: int, _message: str) -> bool:
        return True

    process = WorkerProcess(write_check(tmp_path), 0)
    for inputs, value in (([1, 2], 3), ([3, 4], 7)):
        for text in (how, "works"):
            task = msgspec.structs.replace(TASK, config={"how": text}, inputs={"x": inputs})
            result = await process.run(task, repeatable=True, on_progress=wanted)
            assert (result.kind, result.value) == (ResultKind.COMPLETED, value)
    await process.kill()


async def test_node_that_reads_stdin_gets_no_input(process: WorkerProcess) -> None:
    assert (await run(process, "reads")).value == ""


async def test_process_that_cannot_start_fails_the_attempt(tmp_path: Path) -> None:
    process = WorkerProcess(write_check(tmp_path), 1)
    task = msgspec.structs.replace(TASK, config={}, inputs={"x": [1]})
    result = await process.run(task, repeatable=False, on_progress=never)
    assert result.kind is ResultKind.FAILED
    assert result.reason.startswith("the process of the node did not start")
