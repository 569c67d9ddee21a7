"""Tests of work in threads: results, errors, and a stop that does not wait without end."""

import asyncio
import threading

import pytest

from edge.foundation import threads
from edge.foundation.threads import end_in_thread, run_in_thread


async def test_work_returns_its_result_from_another_thread() -> None:
    assert await run_in_thread(lambda: threading.current_thread().name, "disk") == "disk"


async def test_error_of_the_work_is_raised() -> None:
    with pytest.raises(ZeroDivisionError):
        await run_in_thread(lambda: 1 // 0, "disk")


async def test_cancelled_task_waits_for_its_work() -> None:
    may_end, ended = threading.Event(), threading.Event()
    task = asyncio.create_task(run_in_thread(lambda: ended.set() if may_end.wait(60) else None, "disk"))
    await asyncio.sleep(0)
    task.cancel()
    asyncio.get_running_loop().call_later(0.05, may_end.set)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_cancelled_task_leaves_work_that_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "STOP_WAIT_S", 0.05)
    may_end = threading.Event()
    task = asyncio.create_task(run_in_thread(lambda: may_end.wait(60), "disk"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await end_in_thread(lambda: may_end.wait(60), "disk")
    may_end.set()


async def test_error_of_the_last_work_is_not_raised() -> None:
    await end_in_thread(lambda: 1 // 0, "disk")
