"""Work of a dead instance is taken over by another; work of a live instance is not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.station.equipment import Command
from edge.station.instance import Instance, TakeOver, open_instance
from edge.station.sender import take_over
from edge.store import instance_leases, runs, work
from edge.store.client import Store
from edge.store.lease_watch import LIFETIME_S
from edge.store.open_store import open_store
from tests.station.plant import (
    LINEAR,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    instance,
    next_work,
    obliging,
    order,
    until,
    until_all_is_acknowledged,
    until_true,
)


@asynccontextmanager
async def replica(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock, name: str, late_s: float = 10.0
) -> AsyncIterator[tuple[Plant, Instance]]:
    """Run a whole instance: with its lease, and taking over from others."""
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        plant = await enter(instance(redis, {TIGHTEN: tool}, clock, consumer=name))
        own = await enter(open_instance(plant.store, (SCOPE,)))
        own.lease_regained.append(plant.runs.invalidate_all)
        take_over = TakeOver(plant.store, (SCOPE,), own, plant.runs, plant.worker, late_s)
        for task in (plant.sender, plant.worker, take_over):
            await enter(background_task(own.lease_held.run_while_open(task.run, "task"), "task while present"))
        yield plant, own


@pytest.fixture
async def dying(redis: RedisSettings, tool: FakeEquipment, clock: Clock) -> AsyncIterator[Plant]:
    """An instance that holds its lease and then is heard of no more."""
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="dying") as opened:
        await instance_leases.acquire(opened.store, "dying", "elsewhere pid:[1] 1 x")
        await instance_leases.register(opened.store, (SCOPE,), "dying")
        await opened.teach("linear", LINEAR)
        yield opened


async def test_work_of_a_dead_instance_is_done_within_five_seconds(
    redis: RedisSettings, dying: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    await dying.order(Cause.STORE_AND_START, order("begun"))
    await dying.starter.start(await next_work(dying))
    await dying.order(Cause.STORE_AND_START, order("taken"))
    await next_work(dying)
    async with replica(redis, tool, clock, "other") as (other, _):
        await other.until_state("begun", JobState.ENDED)
        await other.until_state("taken", JobState.ENDED)
        await until_all_is_acknowledged(other)
    assert await runs.jobs_with_outbox(dying.store, "dying") == []
    assert len({command.command_id for command in tool.commands}) == len(tool.commands) == 4


async def test_work_added_later_for_a_frozen_instance_is_taken_over(
    redis: RedisSettings, dying: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    await instance_leases.release(dying.store, "dying", "elsewhere pid:[1] 1 x")
    async with open_store(redis, None) as visited, replica(redis, tool, clock, "other") as (other, own):
        visitor = Plant(visited, {}, clock)
        await until_true(own.gone.empty)
        own.lease_held.set_open(is_open=False)
        await visitor.order(Cause.STORE_AND_START, order("J1"))
        await next_work(dying)
        own.lease_held.set_open(is_open=True)
        await other.until_state("J1", JobState.ENDED)


async def test_work_of_another_scope_is_not_taken_over(
    redis: RedisSettings, dying: Plant, store: Store, tool: FakeEquipment, clock: Clock
) -> None:
    await instance_leases.register(dying.store, ("station-2",), "dying")
    await dying.teach("linear", LINEAR, scope="station-2")
    await dying.order(Cause.STORE_AND_START, order("J1"), scope="station-2")
    await dying.starter.start(await taken_in(dying, "station-2"))
    async with replica(redis, tool, clock, "other", late_s=0.5) as (other, _):
        await until(lambda: is_gone_from_the_register(other.store))
    assert await runs.jobs_with_outbox(store, "dying") == ["J1"]
    assert await store.execute("SISMEMBER", store.keys.instances("station-2"), "dying")


async def taken_in(plant: Plant, scope: str) -> work.Work:
    await work.create_groups(plant.store, (scope,))
    async for (entry,) in work.follow(plant.store, (scope,)):
        assert isinstance(entry, work.Work)
        return entry
    raise AssertionError


async def is_gone_from_the_register(store: Store) -> bool:
    return not await store.execute("SISMEMBER", store.keys.instances(SCOPE), "dying")


@pytest.mark.usefixtures("plant")
async def test_busy_and_starting_instances_are_not_taken_over(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock
) -> None:
    slow = SlowEquipment()
    async with replica(redis, slow, clock, "slow") as (busy, _):
        await busy.order(Cause.STORE_AND_START, order("J1"))
        await slow.busy.wait()
        tool.replies = obliging
        async with replica(redis, tool, clock, "other") as (_, own):
            # Longer than any lease lasts.
            await asyncio.sleep(LIFETIME_S + 2)
            assert own.gone.empty()
            assert tool.commands == []
        slow.resume.set()
        await until_true(lambda: slow.received() == ["a"])


class SlowEquipment(FakeEquipment):
    """Takes its time to take a command."""

    def __init__(self) -> None:
        super().__init__("slow")
        self.busy, self.resume = asyncio.Event(), asyncio.Event()

    async def send(self, command: Command) -> None:
        self.busy.set()
        await self.resume.wait()
        await super().send(command)


@pytest.mark.usefixtures("plant")
async def test_frozen_instance_does_not_send_commands_that_were_taken_over(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock
) -> None:
    away = FakeEquipment("away")
    away.reachable = False
    async with replica(redis, away, clock, "frozen") as (frozen, own):
        await frozen.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: away.refused > 0)
        # Its lease is another's, as that of one who was away for long.
        key = frozen.store.keys.lease_instance("frozen")
        await frozen.store.execute("SET", key, "another", "PX", 60_000)
        await until_true(lambda: not own.lease_held.is_open)
        async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other, other.at_work():
            await instance_leases.acquire(other.store, "other", "other")
            await take_over(other.runs, "J1", "frozen", work.acknowledge(other.store.keys, SCOPE, ()))
            await until_true(lambda: tool.received() == ["a"])
        away.reachable = True
        await frozen.store.execute("DEL", key)
        await until_true(lambda: own.lease_held.is_open)
        await until_all_is_acknowledged(frozen)
    assert away.commands == []


async def test_unreadable_run_does_not_block_the_takeover_of_others(
    redis: RedisSettings, dying: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    for job_id in ("J1", "J2"):
        await dying.order(Cause.STORE_AND_START, order(job_id))
        await dying.starter.start(await next_work(dying))
    await dying.store.execute("HSET", dying.store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
    async with replica(redis, tool, clock, "other") as (other, _):
        await other.until_state("J2", JobState.ENDED)


async def test_instance_with_work_left_to_take_over_stays_registered(
    redis: RedisSettings, dying: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    await dying.order(Cause.STORE_AND_START, order("J1"))
    await dying.starter.start(await next_work(dying))
    run = dying.store.keys.sfc_execution("J1")
    recipe = await dying.store.execute("HGET", run, "recipe")
    await dying.store.execute("HSET", run, "recipe", '{"steps": []}')
    await instance_leases.release(dying.store, "dying", "elsewhere pid:[1] 1 x")
    # It comes later in every look: once it is forgotten, the first was looked at as often.
    await instance_leases.register(dying.store, (SCOPE,), "empty")
    register = dying.store.keys.instances(SCOPE)

    async def the_empty_one_is_forgotten() -> bool:
        return not await dying.store.execute("SISMEMBER", register, "empty")

    async with replica(redis, tool, clock, "other", late_s=0.1) as (other, _):
        await until(the_empty_one_is_forgotten)
        assert await dying.store.execute("SISMEMBER", register, "dying")
        await dying.store.execute("HSET", run, "recipe", recipe)
        await other.until_state("J1", JobState.ENDED)
