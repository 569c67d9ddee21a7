"""Work for clients runs in time slices, one after another, within a budget."""

import asyncio

import pytest

from edge.foundation.rate_limit import Allowance
from edge.opcua.time_slices import Pacer, Turns, session_budget

pytestmark = pytest.mark.slow


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_work_yields_when_its_slice_is_used_up() -> None:
    clock = FakeClock()
    turns = Turns(slice_s=1.0, clock=clock)
    order: list[str] = []

    async def work(name: str, step_s: float) -> None:
        async with turns.work(session_budget()) as turn:
            for _ in range(2):
                order.append(name)
                clock.now += step_s
                await turn.step()

    await asyncio.gather(work("long", 2.0), work("short", 0.1))
    assert order == ["long", "short", "short", "long"]


async def test_only_one_turn_runs_at_a_time() -> None:
    turns = Turns()
    async with turns.work(session_budget()):
        waiting = asyncio.create_task(_take(turns))
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_waiting_tasks_share_one_slice_per_pass() -> None:
    """Twenty refreshes that woke together held the event loop for twenty slices."""
    clock = FakeClock()
    turns = Turns(slice_s=1.0, clock=clock)
    used: list[float] = []

    async def work() -> None:
        async with turns.work(session_budget()) as turn:
            for _ in range(3):
                clock.now += 1.1
                await turn.step()

    tasks = [asyncio.create_task(work()) for _ in range(20)]
    while not all(task.done() for task in tasks):
        before = clock.now
        await asyncio.sleep(0)
        used.append(clock.now - before)
    assert max(used) < 1.2


async def test_cancelled_work_releases_its_turn() -> None:
    clock = FakeClock()
    turns = Turns(slice_s=0.0, clock=clock)
    started = asyncio.Event()

    async def work() -> None:
        async with turns.work(session_budget()) as turn:
            started.set()
            while True:
                clock.now += 1.0
                await turn.step()

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    async with asyncio.timeout(60):
        await _take(turns)


async def test_work_waits_until_its_budget_is_refilled() -> None:
    budget = Allowance(per_s=10.0, most=0.0)
    budget.use(0.2)
    started = asyncio.get_running_loop().time()
    await _take(Turns(), budget)
    assert asyncio.get_running_loop().time() - started >= 0.019


async def test_pacer_yields_after_its_slice() -> None:
    clock = FakeClock()
    pacer = Pacer(slice_s=1.0, clock=clock)
    ran: list[str] = []
    asyncio.get_running_loop().call_soon(ran.append, "other")
    await pacer.step()
    assert not ran
    clock.now = 2.0
    await pacer.step()
    assert ran


async def _take(turns: Turns, budget: Allowance | None = None) -> None:
    async with turns.work(budget or session_budget()):
        pass
