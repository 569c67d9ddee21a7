"""Deadlines are stored: they fire once, survive a restart, and remove expired jobs."""

import asyncio
import contextlib
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.station.equipment import Command
from edge.station.timers import Timers
from edge.store import jobs, runs
from edge.store.commit import Commit, operation
from edge.store.open_store import open_store
from tests.station.plant import (
    KEEP_ENDED_MS,
    NOW,
    SCOPE,
    SUPERVISED,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    all_keys,
    instance,
    linear,
    next_work,
    obliging,
    order,
    pull,
    until,
    until_true,
)
from tests.store.breaks import break_confirmation
from tests.store.servers import relay_to


async def test_command_without_an_answer_in_time_fails_its_job_once(
    running: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    assert await running.timer("J1") == NOW + 5000
    clock.now += 5000
    async with background_task(running.timers.run(), "timers"):
        job = await running.until_state("J1", JobState.ABORTED)
        await until_true(lambda: tool.received(Phase.STOP) == ["a"])
    assert str(job.error) == "action 'a' of step 'one' timed out after 5 s"
    assert job.ended_at == clock.now
    assert job.revision == 3


async def test_run_is_unchanged_before_its_deadline(running: Plant, clock: Clock) -> None:
    clock.now += 4999
    before = await runs.load(running.store, "J1")
    async with background_task(running.timers.run(), "timers"):
        await running.order(Cause.STORE_AND_START, order("J2"))
        await running.until_state("J2", JobState.RUNNING)
    after = await runs.load(running.store, "J1")
    assert before
    assert after
    assert before.revision == after.revision


async def test_answer_in_time_removes_the_deadline(running: Plant, tool: FakeEquipment, clock: Clock) -> None:
    await running.answer(tool.commands[0])
    clock.now += 5000
    async with background_task(running.timers.run(), "timers"):
        # The timer of the deadline is left to come, once; then nothing is due any more.
        await until(lambda: _timer_is(running, "J1", None))
        await running.answer(tool.commands[-1])
        await until_true(lambda: len(tool.commands) == 2)
    assert (await running.job("J1")).status.state is not JobState.ABORTED


async def test_two_instances_at_the_same_deadline_have_one_effect(
    redis: RedisSettings, running: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    clock.now += 6000
    async with (
        instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other,
        background_task(running.timers.run(), "timers"),
        background_task(other.timers.run(), "timers of the other"),
    ):
        await running.until_state("J1", JobState.ABORTED)
        await until_true(lambda: tool.received(Phase.STOP) == ["a"])
    assert (await running.job("J1")).revision == 3
    assert await running.store.execute("XLEN", running.store.keys.joborder_changes(SCOPE)) == 3


async def test_a_deadline_survives_a_restart_and_is_not_armed_again(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await plant.teach("supervised", SUPERVISED)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "supervised"))
        await until_true(lambda: tool.received() == ["a"])
    clock.now += 3000
    async with instance(redis, {TIGHTEN: tool}, clock) as back, back.at_work():
        assert await back.timer("J1") == NOW + 5000
        clock.now += 2000
        async with background_task(back.timers.run(), "timers"):
            await back.until_state("J1", JobState.ABORTED)


async def test_deadline_missed_while_stopped_fires_after_the_start(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await plant.teach("scan", linear(pull("s", "one", timeout_seconds=1)))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "scan"))
        await plant.until_state("J1", JobState.RUNNING)
    clock.now += 3_600_000
    async with instance(redis, {TIGHTEN: tool}, clock) as back, background_task(back.timers.run(), "timers"):
        await until(lambda: _timer_is(back, "J1", clock.now + 3000))
        clock.now += 3000
        back.timers.expect(0)
        await back.until_state("J1", JobState.ABORTED)


@pytest.mark.parametrize("is_stopped", [True, False], ids=["gateway stopped", "store away"])
async def test_answer_that_waited_for_the_store_comes_before_its_time_limit(
    redis: RedisSettings, running: Plant, tool: FakeEquipment, clock: Clock, *, is_stopped: bool
) -> None:
    """A tool that had answered in time was reported as timed out, and its good job aborted."""
    clock.now += 9000
    async with contextlib.AsyncExitStack() as stack:
        back = running
        if is_stopped:
            back = await stack.enter_async_context(instance(redis, {TIGHTEN: tool}, clock))
        else:
            break_confirmation(running.store)
            with pytest.raises(Unavailable):
                await running.store.commit(Commit())
            running.store.ha = None
        await stack.enter_async_context(background_task(back.timers.run(), "timers"))
        await until(lambda: _timer_is(back, "J1", clock.now + 3000))
        await back.answer(tool.commands[0])
        clock.now += 3000
        back.timers.expect(0)
        await until_true(lambda: len(tool.commands) == 2)
        assert (await back.job("J1")).status.state is JobState.RUNNING


async def test_pause_stops_the_time_of_a_deadline(running: Plant, clock: Clock) -> None:
    clock.now += 2000
    await running.ask(Cause.PAUSE, "J1")
    clock.now += 60_000
    async with background_task(running.timers.run(), "timers"):
        await until(lambda: _timer_is(running, "J1", None))
    assert (await running.job("J1")).status.state is JobState.INTERRUPTED
    await running.ask(Cause.RESUME, "J1")
    assert await running.timer("J1") == NOW + 65_000


async def test_deadline_removed_by_another_instance_is_restored_at_resume(
    redis: RedisSettings, running: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await running.ask(Cause.PAUSE, "J1")
    clock.now += 60_000
    async with (
        instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other,
        background_task(other.timers.run(), "timers of the other"),
    ):
        await until(lambda: _timer_is(running, "J1", None))
    await running.ask(Cause.RESUME, "J1")
    assert await running.timer("J1") == NOW + 65_000


async def test_transition_with_a_time_condition_clears_at_its_time(
    plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    timed = {
        "steps": [{"name": "one", "initial": True}, {"name": "two"}],
        "transitions": [{"source": "one", "target": "two", "condition": "steps.one.T > 2s"}],
        "actions": [action("a", "two")],
    }
    tool.replies = obliging
    await plant.teach("timed", timed)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "timed"))
        await plant.until_state("J1", JobState.RUNNING)
        clock.now += 2001
        async with background_task(plant.timers.run(), "timers"):
            await plant.until_state("J1", JobState.ENDED)


async def test_real_deadline_wakes_the_timer_task_in_time(redis: RedisSettings, tool: FakeEquipment) -> None:
    supervised = linear(action("a", "one", timeout_seconds=0.1))
    async with (
        instance(redis, {TIGHTEN: tool}, now_ms) as plant,
        plant.at_work(),
        background_task(Timers(plant.store, plant.runs, look_again_ms=3_600_000).run(), "timers"),
    ):
        await plant.teach("supervised", supervised)
        for number in range(5):
            await plant.order(Cause.STORE_AND_START, order(f"J{number}", "supervised"))
        # Only a deadline wakes the task: without one it sleeps for much longer than this test may last.
        for number in range(5):
            await plant.until_state(f"J{number}", JobState.ABORTED)


async def test_deadline_committed_during_the_poll_is_not_missed(
    tmp_path: Path, redis: RedisSettings, plant: Plant, tool: FakeEquipment
) -> None:
    looked, resume = asyncio.Event(), asyncio.Event()

    async def hold_the_look(request: bytes) -> bool:
        if b"WITHSCORES" in request:
            looked.set()
            await resume.wait()
        return True

    await plant.teach("supervised", linear(action("a", "one", timeout_seconds=0.1)))
    async with relay_to(tmp_path, redis.url) as relay:
        relay.deliver = hold_the_look
        slow = RedisSettings(url=relay.url, prefix=redis.prefix)
        async with (
            instance(redis, {TIGHTEN: tool}, now_ms) as far,
            open_store(slow, "edge") as looking,
            far.at_work(),
            background_task(Timers(looking, far.runs).run(), "timers"),
        ):
            await looked.wait()
            await far.order(Cause.STORE_AND_START, order("J1", "supervised"))
            await until_true(lambda: tool.received() == ["a"])
            resume.set()
            await far.until_state("J1", JobState.ABORTED)


async def test_ended_job_is_removed_with_every_key_after_its_retention_time(
    plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = lambda command: obliging(command) if command.job_id != "J2" else None
    await plant.teach("scan", linear(pull("s", "one")))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.ENDED)
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J2", JobState.RUNNING)
        await plant.ask(Cause.ABORT, "J2")
        await plant.order(Cause.STORE_AND_START, order("J3", "scan"))
        await plant.until_state("J3", JobState.RUNNING)
        await plant.ask(Cause.STOP, "J3")
        await plant.order(Cause.STORE, order("J4"))
        await plant.ask(Cause.ABORT, "J4")
    clock.now += KEEP_ENDED_MS - 1
    async with background_task(plant.timers.run(), "timers"):
        await plant.store.execute("PING")
    assert await jobs.list_ids(plant.store, SCOPE) != []
    clock.now += 1
    async with background_task(plant.timers.run(), "timers"):
        await until(lambda: _none_left(plant))
    keys = plant.store.keys
    permanent = {
        keys.workmaster("linear"),
        keys.workmaster("scan"),
        keys.workmaster_list(SCOPE),
        keys.active_scopes(),
        keys.joborder_changes(SCOPE),
        keys.sfc_work(SCOPE),
        keys.safing(),
        keys.store_version(),
    }
    marks = (":cededupe:", ":tombstone:", ":marks")
    left = {key for key in await all_keys(plant.store) if not any(mark in key for mark in marks)}
    assert left == permanent
    assert await plant.store.execute("XLEN", keys.sfc_work(SCOPE)) == 0


async def _none_left(plant: Plant) -> bool:
    return not await jobs.list_ids(plant.store, SCOPE)


async def test_dedupe_marks_of_a_job_have_a_lifetime(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.ENDED)
    marks = [key for key in await all_keys(plant.store) if ":cededupe:" in key]
    assert marks
    assert all([await plant.store.execute("PTTL", key) > 0 for key in marks])


async def test_outdated_timer_is_corrected_without_a_busy_loop(running: Plant) -> None:
    keys = running.store.keys
    await running.store.commit(operation("ZADD", keys.sfc_timers(), NOW - 1000, "J1"))
    before = await runs.load(running.store, "J1")
    async with background_task(running.timers.run(), "timers"):
        await until(lambda: _timer_is(running, "J1", NOW + 5000))
    after = await runs.load(running.store, "J1")
    assert before
    assert after
    assert after.revision <= before.revision + 1


async def _timer_is(plant: Plant, job_id: str, due: int | None) -> bool:
    return await plant.timer(job_id) == due


async def test_timer_of_a_removed_job_is_discarded(plant: Plant) -> None:
    await plant.store.commit(operation("ZADD", plant.store.keys.sfc_timers(), NOW - 1000, "nobody"))
    async with background_task(plant.timers.run(), "timers"):
        await until(lambda: _timer_is(plant, "nobody", None))


async def test_timer_of_an_unstarted_job_is_discarded(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    await plant.store.commit(operation("ZADD", plant.store.keys.sfc_timers(), NOW - 1000, "J1"))
    async with background_task(plant.timers.run(), "timers"):
        await until(lambda: _timer_is(plant, "J1", None))
    assert (await plant.job("J1")).status.state is JobState.NOT_ALLOWED_TO_START


@pytest.mark.parametrize("state", [JobState.ALLOWED_TO_START, JobState.RUNNING])
async def test_job_that_ends_at_its_deadline_is_retained(plant: Plant, state: JobState) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    if state is JobState.RUNNING:
        await plant.starter.start(await next_work(plant))
    await plant.ask(Cause.ABORT, "J1")
    await plant.store.commit(operation("ZADD", plant.store.keys.sfc_timers(), NOW, "J1"))
    async with background_task(plant.timers.run(), "timers"):
        await until(lambda: _timer_is(plant, "J1", NOW + KEEP_ENDED_MS))
    assert (await plant.job("J1")).status.state is JobState.ABORTED


async def test_defect_in_one_job_does_not_block_deadlines_of_others(running: Plant, clock: Clock) -> None:
    await running.order(Cause.STORE_AND_START, order("J2", "supervised"))
    await running.until_state("J2", JobState.RUNNING)
    await running.store.execute("HSET", running.store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
    running.runs.invalidate("J1")
    clock.now += 5000
    async with background_task(running.timers.run(), "timers"):
        await running.until_state("J2", JobState.ABORTED)
        await until(lambda: _timer_is_after(running, "J1", clock.now))


async def _timer_is_after(plant: Plant, job_id: str, instant: int) -> bool:
    return (await plant.timer(job_id) or 0) > instant


@pytest.mark.untraced
async def test_two_hundred_deadlines_at_one_instant_all_fire(plant: Plant, tool: FakeEquipment, clock: Clock) -> None:
    def note(command: Command) -> None:
        seen.add(command.job_id)

    seen: set[str] = set()
    tool.replies = note
    await plant.store.commit(operation("SET", plant.store.keys.jobacceptance(SCOPE), 1000))
    await plant.teach("supervised", SUPERVISED)
    async with plant.at_work():
        await asyncio.gather(
            *(plant.order(Cause.STORE_AND_START, order(f"J{number}", "supervised")) for number in range(200))
        )
        await until_true(lambda: len(seen) == 200)
        clock.now += 5000
        async with background_task(plant.timers.run(), "timers"):
            await until(lambda: _none_open(plant))


async def _none_open(plant: Plant) -> bool:
    return await jobs.count_open(plant.store, SCOPE) == 0
