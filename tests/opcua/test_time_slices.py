"""Work for clients runs in time slices, one after another, within a budget."""

import asyncio
import threading
import time

import pytest

from edge.opcua.time_slices import BURST_S, OWN_BURST_S, Account, Pacer, Turns

pytestmark = pytest.mark.slow


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_work_yields_when_its_slice_is_used_up() -> None:
    clock = FakeClock()
    turns = Turns(slice_s=0.001, clock=clock)
    order: list[str] = []

    async def work(name: str, step_s: float) -> None:
        async with turns.work(turns.account("")) as turn:
            for _ in range(2):
                order.append(name)
                clock.now += step_s
                await turn.step()

    await asyncio.gather(work("long", 0.002), work("short", 0.0001))
    assert order == ["long", "short", "short", "long"]


async def test_only_one_turn_runs_at_a_time() -> None:
    turns = Turns()
    async with turns.work(turns.account("")):
        waiting = asyncio.create_task(_take(turns))
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting


async def test_waiting_tasks_share_one_slice_per_pass() -> None:
    """Twenty refreshes that woke together held the event loop for twenty slices."""
    clock = FakeClock()
    turns = Turns(slice_s=0.001, clock=clock)
    used: list[float] = []

    async def work() -> None:
        async with turns.work(turns.account("")) as turn:
            for _ in range(3):
                clock.now += 0.0011
                await turn.step()

    tasks = [asyncio.create_task(work()) for _ in range(20)]
    while not all(task.done() for task in tasks):
        before = clock.now
        await asyncio.sleep(0)
        used.append(clock.now - before)
    assert max(used) < 0.0012


async def test_turn_does_not_go_to_work_that_was_just_cancelled() -> None:
    """A deleted subscription that waited for its turn failed the request that had it."""
    turns = Turns()
    async with turns.work(turns.account("")):
        cancelled, waiting = (asyncio.create_task(_take(turns)) for _ in range(2))
        await asyncio.sleep(0)
        cancelled.cancel()
    await waiting
    assert cancelled.cancelled()


async def test_cancelled_work_releases_its_turn() -> None:
    clock = FakeClock()
    turns = Turns(slice_s=0.0, clock=clock)
    started = asyncio.Event()

    async def work() -> None:
        async with turns.work(turns.account("")) as turn:
            started.set()
            while True:
                clock.now += 0.001
                await turn.step()

    task = asyncio.create_task(work())
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    async with asyncio.timeout(60):
        await _take(turns)


async def test_work_waits_until_the_budget_of_all_is_refilled() -> None:
    turns = Turns()
    heavy = turns.account("heavy")
    heavy.use(BURST_S + 0.01)
    started = asyncio.get_running_loop().time()
    await _take(turns, heavy)
    assert asyncio.get_running_loop().time() - started >= 0.02


async def test_user_who_used_little_does_not_wait_for_the_budget_of_others() -> None:
    turns = Turns()
    turns.account("heavy").use(BURST_S + 100)
    async with asyncio.timeout(10):
        await _take(turns, turns.account("other"))


async def test_waiting_users_are_served_by_what_they_have_used() -> None:
    """Twelve sessions of one user had twelve times the budget of another user with one."""
    clock = FakeClock()
    turns = Turns(slice_s=0.001, clock=clock)
    order: list[str] = []

    async def work(user: str, account: Account) -> None:
        async with turns.work(account) as turn:
            for _ in range(3):
                order.append(user)
                clock.now += 0.0011
                await turn.step()

    for user in ("many", "one"):
        turns.account(user).use(OWN_BURST_S + 0.1)
    accounts = [turns.account("many") for _ in range(12)]
    tasks = [asyncio.create_task(work("many", account)) for account in accounts]
    await asyncio.sleep(0)
    tasks.append(asyncio.create_task(work("one", turns.account("one"))))
    await asyncio.gather(*tasks)
    last = len(order) - order[::-1].index("one")
    assert last <= 8, order


async def test_sessions_of_a_user_are_served_by_what_they_have_used() -> None:
    turns = Turns()
    heavy, light = turns.account("user"), turns.account("user")
    heavy.use(1.0)
    order: list[str] = []

    async def work(name: str, account: Account) -> None:
        async with turns.work(account):
            order.append(name)

    async with turns.work(turns.account("other")):
        tasks = [asyncio.create_task(work("heavy", heavy)), asyncio.create_task(work("light", light))]
        await asyncio.sleep(0)
    await asyncio.gather(*tasks)
    assert order == ["light", "heavy"]


async def test_work_in_a_thread_is_charged_and_one_at_a_time() -> None:
    turns = Turns()
    account = turns.account("user")
    running: list[int] = []
    most: list[int] = []

    def work() -> None:
        running.append(1)
        most.append(len(running))
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass
        running.pop()

    await asyncio.gather(*(turns.reader.run(account, work) for _ in range(4)))
    assert max(most) == 1
    assert account.used_s >= 0.08
    turns.close()


async def test_thread_is_charged_for_work_whose_caller_was_cancelled() -> None:
    turns = Turns()
    account = turns.account("user")
    started, end = threading.Event(), threading.Event()

    def work() -> None:
        started.set()
        end.wait(60)
        until = time.thread_time() + 0.02
        while time.thread_time() < until:
            pass

    task = asyncio.create_task(turns.reader.run(account, work))
    await asyncio.to_thread(started.wait, 60)
    task.cancel()
    await asyncio.wait([task])
    end.set()
    async with asyncio.timeout(60):
        await turns.reader.run(turns.account("other"), lambda: None)
    assert account.used_s >= 0.02
    turns.close()


async def test_method_that_waits_for_the_store_is_charged_for_its_own_time() -> None:
    clock = FakeClock()
    turns = Turns(clock=clock)
    account = turns.account("user")
    stored: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def method() -> int:
        clock.now += 1.0
        found = await stored
        clock.now += 1.0
        return found

    task = asyncio.create_task(turns.charge(account, method()))
    await asyncio.sleep(0)
    clock.now += 100.0  # others work
    stored.set_result(7)
    assert await task == 7
    assert account.used_s == pytest.approx(2.0)


async def test_charged_methods_share_one_slice_per_pass() -> None:
    """Twelve methods that woke together held the event loop for twelve slices."""
    clock = FakeClock()
    turns = Turns(slice_s=0.001, clock=clock)
    used: list[float] = []

    async def method() -> None:
        for _ in range(3):
            clock.now += 0.0011
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(turns.charge(turns.account(""), method())) for _ in range(12)]
    while not all(task.done() for task in tasks):
        before = clock.now
        await asyncio.sleep(0)
        used.append(clock.now - before)
    assert max(used) < 0.0025


async def test_charged_work_is_cancelled_with_its_caller() -> None:
    turns = Turns()
    ended: list[str] = []
    started = asyncio.Event()

    async def method() -> None:
        try:
            started.set()
            await asyncio.Future()
        except asyncio.CancelledError:
            ended.append("cancelled")
            raise

    task = asyncio.create_task(turns.charge(turns.account("user"), method()))
    await started.wait()
    task.cancel()
    await asyncio.wait([task])
    assert (task.cancelled(), ended) == (True, ["cancelled"])


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


async def _take(turns: Turns, account: Account | None = None) -> None:
    async with turns.work(account or turns.account("")):
        pass
