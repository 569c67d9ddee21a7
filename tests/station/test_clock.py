"""A step of the wall clock does not disturb running jobs, and later jobs use the new time."""

import asyncio
import time

import pytest

from edge.config import RedisSettings
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.station.clock import SteadyClock, StoreTime, follow_reference_clock, store_clock
from edge.store.client import Store
from tests.station.plant import (
    LINEAR,
    NOW,
    TIGHTEN,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    order,
    until,
    until_true,
)
from tests.store.test_server_time import behind_sentinel

HOUR_MS = 3_600_000
STEPS = [HOUR_MS, -HOUR_MS, 56 * 365 * 24 * HOUR_MS]


class Clocks:
    """A wall clock that may be set, and the time that has passed since the machine was switched on."""

    def __init__(self) -> None:
        self.set_by = 0
        self.elapsed = 7_000

    def steady(self) -> SteadyClock:
        return SteadyClock(lambda: (NOW + self.elapsed + self.set_by) * 1_000_000, lambda: self.elapsed * 1_000_000)


@pytest.fixture
def clocks() -> Clocks:
    return Clocks()


@pytest.mark.parametrize("step", STEPS)
def test_clock_runs_steadily_until_a_wall_clock_step_is_followed(clocks: Clocks, step: int) -> None:
    clock = clocks.steady()
    assert (clock(), clock.step_ms()) == (NOW + 7_000, 0)
    clocks.set_by = step
    clocks.elapsed += 1_000
    assert (clock(), clock.step_ms()) == (NOW + 8_000, step)
    clock.follow()
    assert (clock(), clock.step_ms()) == (NOW + 8_000 + step, 0)


def test_clock_without_a_step_has_the_host_time() -> None:
    clock = SteadyClock()
    assert abs(clock.step_ms()) <= 1


@pytest.mark.parametrize("step", STEPS)
async def test_deadline_ignores_steps_of_the_wall_clock(
    redis: RedisSettings, tool: FakeEquipment, clocks: Clocks, step: int
) -> None:
    clock = clocks.steady()
    async with (
        instance(redis, {TIGHTEN: tool}, clock) as plant,
        plant.at_work(),
        background_task(plant.timers.run(), "timers"),
        background_task(follow_reference_clock(clock, plant.store, 0.01), "clock"),
    ):
        await plant.teach("supervised", linear(action("a", "one", timeout_seconds=5)))
        await plant.order(Cause.STORE_AND_START, order("J1", "supervised"))
        await until_true(lambda: tool.received() == ["a"])
        clocks.set_by = step
        clocks.elapsed += 4_999
        plant.timers.expect(0)
        await looked_at(plant)
        assert (await plant.job("J1")).status.state is JobState.RUNNING
        clocks.elapsed += 1
        plant.timers.expect(0)
        job = await plant.until_state("J1", JobState.ABORTED)
        assert str(job.error) == "action 'a' of step 'one' timed out after 5 s"
        # Now that no job runs, the new time holds.
        await until_true(lambda: clock.step_ms() == 0)
        assert clock() == NOW + clocks.elapsed + step


async def looked_at(plant: Plant) -> None:
    """Run a second job to its end; by then the timers and the clock have checked the first."""
    await plant.teach("linear", LINEAR)
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await plant.until_state("J2", JobState.RUNNING)
    await asyncio.sleep(0.05)
    await plant.ask(Cause.ABORT, "J2")


async def test_small_clock_step_is_followed_at_once(redis: RedisSettings, tool: FakeEquipment, clocks: Clocks) -> None:
    clock = clocks.steady()
    async with (
        instance(redis, {TIGHTEN: tool}, clock) as plant,
        plant.at_work(),
        background_task(follow_reference_clock(clock, plant.store, 0.01), "clock"),
    ):
        await plant.teach("linear", LINEAR)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.RUNNING)
        clocks.set_by = 50

        async def is_followed() -> bool:
            return clock.step_ms() == 0

        await until(is_followed)


async def test_difference_after_a_failover_ends_when_no_job_runs(redis: RedisSettings, tool: FakeEquipment) -> None:
    """The clock of the jobs is an hour ahead of the new primary's; it runs on while a job runs."""
    async with instance(redis, {TIGHTEN: tool}, now_ms) as plant, plant.at_work():
        await behind_sentinel(plant.store, HOUR_MS)
        reference = StoreTime(plant.store)
        await reference.refresh()
        clock = SteadyClock(reference)
        await plant.teach("linear", LINEAR)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        async with background_task(follow_reference_clock(clock, plant.store, 0.01, reference.settle), "clock"):
            await asyncio.sleep(0.1)
            assert abs(clock() - now_ms() - HOUR_MS) < 60_000
            await plant.ask(Cause.ABORT, "J1")
            await until_true(lambda: plant.store.clock_ms == 0)
            await until_true(lambda: abs(clock() - now_ms()) < 60_000)


class HostClock:
    """What has passed since the start of this machine, as a store's host sees it whose clock is set meanwhile."""

    def __init__(self) -> None:
        self.set_by_ms = 0

    def __call__(self) -> int:
        return time.monotonic_ns() - self.set_by_ms * 1_000_000


@pytest.mark.parametrize("step_ms", [HOUR_MS, -HOUR_MS])
async def test_gateway_that_starts_after_a_clock_step_has_the_clock_of_the_jobs(
    redis: RedisSettings, tool: FakeEquipment, step_ms: int
) -> None:
    """It aborted good jobs of the other gateway as timed out, or let them hang for as long as the step."""
    async with instance(redis, {TIGHTEN: tool}, now_ms) as plant, plant.at_work():
        await behind_sentinel(plant.store, 0)
        host = HostClock()
        reference = StoreTime(plant.store, host)
        await reference.refresh()
        clock = SteadyClock(reference, host)
        await plant.teach("linear", LINEAR)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        async with background_task(follow_reference_clock(clock, plant.store, 0.01, reference.settle), "clock"):
            await asyncio.sleep(0.05)
            assert plant.store.clock_ms == 0
            # Seen from here, the clock of the host goes forward by as much as our own goes back.
            host.set_by_ms = step_ms
            await until_true(lambda: abs(plant.store.clock_ms + step_ms) < 1_000)
            starting = await store_clock(plant.store)
            assert abs(starting() - (now_ms() - step_ms)) < 1_000
            assert "the clock of the jobs is 3600.0 s" in str(*clock.problems(plant.store))
            await asyncio.sleep(0.05)
            assert abs(plant.store.clock_ms + step_ms) < 1_000
            await plant.ask(Cause.ABORT, "J1")
            await until_true(lambda: plant.store.clock_ms == 0)
            await until_true(lambda: not list(clock.problems(plant.store)))


async def test_difference_that_another_gateway_has_set_is_followed(redis: RedisSettings, tool: FakeEquipment) -> None:
    """A gateway that started within two seconds of a step judged its jobs by another clock until the line was idle."""
    async with instance(redis, {TIGHTEN: tool}, now_ms) as plant, plant.at_work():
        await behind_sentinel(plant.store, 0)
        reference = StoreTime(plant.store, wall_ns=lambda: 0)
        await reference.refresh()
        clock = SteadyClock(reference)
        await plant.teach("linear", LINEAR)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        async with background_task(follow_reference_clock(clock, plant.store, 0.01, reference.settle), "clock"):
            await asyncio.sleep(0.05)
            await plant.store.execute("HSET", plant.store.keys.generation(), "clock", HOUR_MS)
            await until_true(lambda: plant.store.clock_ms == HOUR_MS)
            await asyncio.sleep(0.1)
            assert plant.store.clock_ms == HOUR_MS
            assert abs(clock() - now_ms() - HOUR_MS) < 1_000


async def test_difference_stays_while_the_clock_of_the_new_host_is_wrong(store: Store) -> None:
    """Its clock is behind that of this machine: StartTimes would come late."""
    await behind_sentinel(store, HOUR_MS)
    reference = StoreTime(store, wall_ns=lambda: time.time_ns() + HOUR_MS * 1_000_000)
    await reference.settle()
    assert store.clock_ms == HOUR_MS
    await StoreTime(store).settle()
    assert store.clock_ms == 0


async def test_clock_that_differs_from_that_of_the_store_is_a_problem(store: Store) -> None:
    reference = StoreTime(store)
    await reference.refresh()
    assert list(reference.problems()) == []
    reference.server_ahead_ms = -2_000
    assert list(map(str, reference.problems())) == [
        "the clock of the store's host is 2.0 s behind that of this machine"
    ]


async def test_store_time_is_that_of_the_host_of_the_store(store: Store) -> None:
    reference = StoreTime(store)
    await reference.refresh()
    assert abs(reference() - time.time_ns()) < 60_000_000_000


async def test_clock_of_a_skewed_gateway_shows_the_time_of_the_store(store: Store) -> None:
    skewed = StoreTime(store, lambda: time.monotonic_ns() + 3_600_000_000_000)
    await skewed.refresh()
    exact = await store_clock(store)
    assert abs(SteadyClock(skewed)() - exact()) < 60_000
