"""A change wakes every task that waits for a condition."""

import asyncio

from edge.equipment.change_signal import ChangeSignal


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
