"""Tests of gateways whose clocks differ, and of the sweep that returns lost jobs to the queue of starts."""

from datetime import UTC, datetime

import pytest

from edge.config import RedisSettings
from edge.model.job_state import Cause, JobState
from edge.station.start import StartSweep
from edge.store import work
from edge.store.open_store import open_store
from tests.station.plant import NOW, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant, instance, next_work, obliging, order

SKEWS_MS = [1, -1, 10, -10, 1_000, -1_000, 3_600_000, -3_600_000]


def clock_with(skew_ms: int) -> Clock:
    clock = Clock()
    clock.now += skew_ms
    return clock


def sweep_of(plant: Plant, claimed: list[bool] | None = None) -> StartSweep:
    found = claimed if claimed is not None else []
    return StartSweep(plant.store, (SCOPE,), plant.runs.clock, lambda: found.append(True))


@pytest.mark.parametrize("skew_ms", SKEWS_MS)
async def test_job_starts_at_a_gateway_whose_clock_differs(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, skew_ms: int
) -> None:
    tool.replies = obliging
    async with instance(redis, {TIGHTEN: tool}, clock_with(skew_ms), consumer="other") as other, other.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await other.until_state("J1", JobState.ENDED)


@pytest.mark.parametrize("skew_ms", SKEWS_MS)
async def test_job_queued_by_one_gateway_is_started_by_another(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock, skew_ms: int
) -> None:
    tool.replies = obliging
    start = datetime.fromtimestamp((NOW + 5_000) / 1000, UTC)
    await plant.order(Cause.STORE_AND_START, order("J1", start_time=start))
    clock.now += 5_000
    await plant.timers._serve_due()  # noqa: SLF001 - one look of the timers, without their loop
    async with instance(redis, {TIGHTEN: tool}, clock_with(skew_ms), consumer="other") as other, other.at_work():
        await other.until_state("J1", JobState.ENDED)


async def test_work_entry_before_the_start_time_sets_the_timer(plant: Plant, tool: FakeEquipment) -> None:
    start = datetime.fromtimestamp((NOW + 5_000) / 1000, UTC)
    await plant.order(Cause.STORE_AND_START, order("J1", start_time=start))
    await plant.store.execute("ZREM", plant.store.keys.sfc_timers(), "J1")
    await plant.store.commit(work.add(plant.store.keys, SCOPE, work.WorkKind.START_RECIPE, "J1"))
    await plant.drive()
    assert tool.received() == []
    assert await plant.timer("J1") == NOW + 5_000


async def test_sweep_returns_a_job_without_queue_entry_and_timer(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    keys = plant.store.keys
    await plant.store.execute("DEL", keys.joborder_startable(SCOPE))
    await plant.store.execute("XTRIM", keys.sfc_work(SCOPE), "MAXLEN", 0)
    await sweep_of(plant).sweep()
    await plant.drive()
    assert tool.received() == ["a"]


async def test_sweep_adds_the_missing_work_entries(plant: Plant, tool: FakeEquipment) -> None:
    for job_id in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job_id))
    await plant.store.execute("XTRIM", plant.store.keys.sfc_work(SCOPE), "MAXLEN", 0)
    await sweep_of(plant).sweep()
    await plant.drive()
    assert tool.received() == ["a", "a"]


async def test_sweep_leaves_valid_jobs_unchanged(plant: Plant) -> None:
    start = datetime.fromtimestamp((NOW + 5_000) / 1000, UTC)
    await plant.order(Cause.STORE_AND_START, order("J1", start_time=start))
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await plant.order(Cause.STORE, order("J3"))
    before = await work.length(plant.store, SCOPE)
    await sweep_of(plant).sweep()
    assert await work.length(plant.store, SCOPE) == before
    assert (await plant.job("J1")).revision == 1


async def test_work_of_an_unregistered_consumer_is_claimed(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    async with open_store(redis, "nobody") as store:
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await next_work(Plant(store, {TIGHTEN: tool}, clock))
    claimed: list[bool] = []
    await sweep_of(plant, claimed).sweep()
    assert claimed == [True]
    await plant.drive()
    assert tool.received() == ["a"]
