"""Jobs that share a tool: one holds it for its locked steps, the others wait in their order."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from edge.access.locks import delete_locks, find_locks, hold_lock, plan_acquire
from edge.config import RedisSettings
from edge.model.job_state import Cause, JobState
from edge.model.lock import LockClaim, LockKind
from edge.sfc.run import LockChange
from edge.sfc.signal import Phase
from edge.sfc.waiting import explain_waiting
from edge.station.active_runs import ActiveRuns
from edge.station.runs import plan_locks
from edge.station.stored_job import load
from edge.station.waiting_runs import LockSweep
from edge.store.client import Store
from edge.store.commit import NOTHING, Commit, CommitResult, Committed
from tests.station.plant import (
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    obliging,
    order,
    until,
    until_all_is_acknowledged,
)


def locked(recipe: dict[str, Any], *steps: str, lock: str = "wrench") -> dict[str, Any]:
    """Return a recipe in which some steps have a lock."""
    for step in recipe["steps"]:
        if step["name"] in steps:
            step["lock"] = [lock]
    return recipe


PART = linear(action("seat", "seat"), action("tight", "tight"), action("photo", "photo"))


async def taught(plant: Plant) -> None:
    await plant.teach("part", locked(PART, "seat", "tight"))


async def holders(plant: Plant) -> dict[str, list[str]]:
    """Return the owner of each lock, and those that wait for it."""
    stored_locks = await find_locks(plant.store, (LockKind.EQUIPMENT,), ())
    return {
        stored_lock.object_id: [stored_lock.lock.holder.owner, *(waiter.owner for waiter in stored_lock.lock.waiters)]
        for stored_lock in stored_locks
        if stored_lock.lock
    }


async def why(plant: Plant, job_id: str) -> str:
    stored_job = await load(plant.store, job_id)
    assert stored_job.net
    assert stored_job.run
    return "; ".join(map(str, explain_waiting(stored_job.net, stored_job.run, plant.runs.clock(), stored_job.holders)))


async def test_jobs_sharing_a_tool_do_not_interleave_within_a_part(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await taught(plant)
    async with plant.at_work():
        for number in range(6):
            await plant.order(Cause.STORE_AND_START, order(f"J{number}", "part"))
        for number in range(6):
            await plant.until_state(f"J{number}", JobState.ENDED)
        await until_all_is_acknowledged(plant)
    worked = [(command.job_id, command.action) for command in tool.commands if command.action in {"seat", "tight"}]
    assert [job for job, _ in worked[::2]] == [job for job, _ in worked[1::2]]
    assert {action for _, action in worked[::2]} == {"seat"}
    assert await holders(plant) == {}


async def test_a_job_that_waits_names_the_lock_and_its_holder(plant: Plant, tool: FakeEquipment) -> None:
    await taught(plant)
    await plant.order(Cause.STORE_AND_START, order("J1", "part"))
    await plant.drive()
    await plant.order(Cause.STORE_AND_START, order("J2", "part"))
    await plant.drive()
    assert tool.received() == ["seat"]
    assert await holders(plant) == {"wrench": ["job J1", "job J2"]}
    assert "start → seat [always] waits for lock wrench: held by job J1 (step seat) for " in await why(plant, "J2")


async def test_waiting_job_continues_when_the_lock_is_released(plant: Plant, tool: FakeEquipment) -> None:
    await taught(plant)
    for job in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job, "part"))
        await plant.drive()
    for _ in range(2):
        await plant.answer(tool.commands[-1], {})
        await plant.drive()
    assert [(command.job_id, command.action) for command in tool.commands[-2:]] == [("J1", "photo"), ("J2", "seat")]
    assert await holders(plant) == {"wrench": ["job J2"]}


@pytest.mark.parametrize("end", [Cause.ABORT, Cause.STOP])
async def test_an_ended_job_passes_its_lock_on(plant: Plant, tool: FakeEquipment, end: Cause) -> None:
    await taught(plant)
    for job in ("J1", "J2", "J3"):
        await plant.order(Cause.STORE_AND_START, order(job, "part"))
        await plant.drive()
    await plant.ask(end, "J2")
    assert await holders(plant) == {"wrench": ["job J1", "job J3"]}
    await plant.ask(end, "J1")
    await plant.drive()
    assert tool.received(Phase.START) == ["seat", "seat"]
    assert await holders(plant) == {"wrench": ["job J3"]}
    await plant.ask(end, "J3")
    assert await holders(plant) == {}


async def test_paused_job_keeps_its_lock(plant: Plant, tool: FakeEquipment) -> None:
    await taught(plant)
    for job in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job, "part"))
        await plant.drive()
    await plant.ask(Cause.PAUSE, "J1")
    await plant.ask(Cause.PAUSE, "J2")
    assert await holders(plant) == {"wrench": ["job J1", "job J2"]}
    await plant.ask(Cause.ABORT, "J1")
    await plant.drive()
    assert await holders(plant) == {"wrench": ["job J2"]}
    assert tool.received() == ["seat"]
    await plant.ask(Cause.RESUME, "J2")
    await plant.drive()
    assert tool.received() == ["seat", "seat"]


async def test_jobs_wait_for_a_lock_held_by_an_operator(plant: Plant, tool: FakeEquipment) -> None:
    await taught(plant)
    async with hold_lock(plant.store, LockKind.EQUIPMENT, "wrench", "anna", "tool is inspected"):
        await plant.order(Cause.STORE_AND_START, order("J1", "part"))
        await plant.drive()
        assert "held by anna (tool is inspected)" in await why(plant, "J1")
    await plant.drive()
    assert tool.received() == ["seat"]


async def test_deleted_lock_is_granted_to_the_waiting_job(plant: Plant, tool: FakeEquipment) -> None:
    await taught(plant)
    for job in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job, "part"))
        await plant.drive()

    async def no_record(_: object) -> Commit:
        return NOTHING

    stored_locks = await find_locks(plant.store, (LockKind.EQUIPMENT,), ("wrench",))
    await delete_locks(plant.store, stored_locks, no_record, force=True)
    await plant.drive()
    assert tool.received() == ["seat", "seat"]
    # The end of the job that lost its lock leaves the lock of the other one alone.
    await plant.ask(Cause.ABORT, "J1")
    assert await holders(plant) == {"wrench": ["job J2"]}


async def test_lock_of_a_killed_instance_is_continued_by_another(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await taught(plant)
    for job in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job, "part"))
        await plant.drive()
    first = tool.commands[0]
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        assert await holders(other) == {"wrench": ["job J1", "job J2"]}
        await other.answer(first, {})
        await other.drive()
        await other.answer(tool.commands[-1], {})
        await other.drive()
        assert [(command.job_id, command.action) for command in tool.commands[1:]] == [
            ("J1", "tight"),
            ("J1", "photo"),
            ("J2", "seat"),
        ]


async def test_sweep_removes_orphaned_locks_and_restores_lost_claims(plant: Plant, tool: FakeEquipment) -> None:
    await taught(plant)
    claim = LockClaim(owner="job J9", since=1, job_id="J9", scope=SCOPE)
    plan = await plan_acquire(plant.store, LockKind.EQUIPMENT, ("wrench",), claim)
    assert isinstance(await plant.store.commit(plan.commit), Committed)
    active_runs = ActiveRuns(plant.runs, (SCOPE,))
    await plant.order(Cause.STORE_AND_START, order("J1", "part"))
    await plant.drive()
    sweep = LockSweep(plant.runs, active_runs)
    await sweep.sweep()
    await plant.drive()
    assert tool.received() == ["seat"]
    assert await holders(plant) == {"wrench": ["job J1"]}
    # The queue is lost: a lock that cannot be read counts as free.
    await plant.order(Cause.STORE_AND_START, order("J2", "part"))
    await plant.drive()
    await plant.store.execute("DEL", plant.store.keys.locks("equipment"))
    await plant.ask(Cause.ABORT, "J1")
    await active_runs.look()
    await sweep.sweep()
    await plant.drive()
    assert tool.received() == ["seat", "seat"]


async def test_a_lock_that_times_out_fails_the_job(plant: Plant, clock: Clock) -> None:
    recipe = locked(linear(action("seat", "seat")), "seat")
    recipe["steps"][0]["lock_timeout_seconds"] = 5
    await plant.teach("short", recipe)
    for job in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job, "short"))
        await plant.drive()
    clock.now += 5000

    async def failed() -> bool:
        return (await plant.job("J2")).error is not None

    task = asyncio.create_task(plant.timers.run())
    await until(failed, 60)
    task.cancel()
    assert (
        str((await plant.job("J2")).error) == "step 'seat': lock 'wrench' was not free within its lock_timeout_seconds"
    )
    assert await holders(plant) == {"wrench": ["job J1"]}


class RacedStore(Store):
    """A store on the connections of another one; something happens right before its next commit."""

    def __init__(self, store: Store, race: Callable[[], Awaitable[None]]) -> None:
        vars(self).update(vars(store))
        self._races = [race]

    async def commit(self, commit: Commit) -> CommitResult:
        """Commit after the race, if it is still to come."""
        while self._races:
            await self._races.pop()()
        return await super().commit(commit)


async def test_lock_claimed_during_a_commit_is_released_at_the_next_try(plant: Plant, tool: FakeEquipment) -> None:
    await taught(plant)
    await plant.order(Cause.STORE_AND_START, order("J1", "part"))
    for _ in range(2):
        await plant.drive()
    await plant.answer(tool.commands[-1], {})
    await plant.drive()

    async def claim() -> None:
        plan = await plan_locks(plant.store, "J9", SCOPE, LockChange(claimed=("wrench",)))
        assert plan is not None
        assert isinstance(await plant.store.commit(plan), Committed)

    plant.runs.store = RacedStore(plant.store, claim)
    await plant.answer(tool.commands[-1], {})
    await plant.drive()
    assert tool.received() == ["seat", "tight", "photo"]
    assert await holders(plant) == {"wrench": ["job J9"]}
