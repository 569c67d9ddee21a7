"""Tests of listeners that are isolated from each other."""

import asyncio

from structlog.testing import capture_logs

from edge.foundation.listeners import ChangeSignal, notify, notify_async


def fail(_: int) -> None:
    raise RuntimeError("no room")


async def fail_later(_: int) -> None:
    raise RuntimeError("no room")


def test_failing_listener_affects_no_other_and_is_logged() -> None:
    seen: list[int] = []
    with capture_logs() as logs:
        notify([fail, seen.append], 7)
    assert seen == [7]
    assert [(entry["event"], entry["listener"]) for entry in logs] == [("listener failed", "fail")]


async def test_failing_async_listener_affects_no_other_and_is_logged() -> None:
    seen: list[int] = []

    async def note(number: int) -> None:
        seen.append(number)

    with capture_logs() as logs:
        await notify_async([fail_later, note], 7)
    assert seen == [7]
    assert [entry["event"] for entry in logs] == ["listener failed"]


def test_listener_that_removes_itself_skips_no_other() -> None:
    seen: list[int] = []

    def once(_: int) -> None:
        listeners.remove(once)

    listeners = [once, seen.append]
    notify(listeners, 7)
    assert seen == [7]


async def test_all_waiting_tasks_check_their_condition_after_a_change() -> None:
    signal, states = ChangeSignal(), set[str]()
    ready = asyncio.create_task(signal.wait_until(lambda: "ready" in states, None))
    idle = asyncio.create_task(signal.wait_until(lambda: "idle" in states, 60.0))
    await asyncio.sleep(0)
    states.add("ready")
    signal.set()
    assert await ready
    assert not idle.done()
    states.add("idle")
    signal.set()
    assert await idle


async def test_condition_that_stays_false_ends_with_the_time() -> None:
    assert not await ChangeSignal().wait_until(lambda: False, 0.01)
    assert await ChangeSignal().wait_until(lambda: True, 0.0)
