"""A job that is allowed to start begins its recipe, or fails at once with the reason."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import pytest

from edge.foundation.task_group import background_task
from edge.model.isa95 import JobOrder, Parameter
from edge.model.job_state import Cause, JobState
from edge.station.start import Starter
from edge.store import changes, dead_letters, jobs, resources, responses, runs, version, work
from edge.store.commit import join
from edge.store.work import WorkKind
from tests.station.plant import (
    KEEP_ENDED_MS,
    LINEAR,
    NOW,
    SCOPE,
    Clock,
    FakeEquipment,
    Plant,
    action,
    linear,
    next_work,
    obliging,
    order,
    pull,
    until,
    until_all_is_acknowledged,
)


async def reason_of_failure(plant: Plant, job_id: str) -> str:
    """Wait until a job has failed; check its documents, and return the reason."""
    job = await plant.until_state(job_id, JobState.ABORTED)
    response = await responses.load(plant.store, job)
    assert job.error
    assert response
    assert response.description
    assert response.description.text == str(job.error)
    assert response.end_time
    store, keys = plant.store, plant.store.keys
    assert await store.execute("ZSCORE", keys.joborder_open(SCOPE), job_id) is None
    assert float(await store.execute("ZSCORE", keys.sfc_timers(), job_id)) == NOW + KEEP_ENDED_MS
    assert await store.execute("XLEN", keys.sfc_work(SCOPE)) == 0
    return str(job.error)


@pytest.fixture
async def working(plant: Plant) -> AsyncIterator[Plant]:
    async with plant.at_work():
        yield plant


async def test_a_job_without_a_work_master_fails_at_once(working: Plant) -> None:
    await working.order(Cause.STORE_AND_START, JobOrder(job_order_id="J1"))
    assert "names no Work Master" in await reason_of_failure(working, "J1")


async def test_job_with_a_removed_work_master_fails_at_once(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.store.commit(await resources.plan_removal(plant.store, SCOPE, ["linear"]))
    async with plant.at_work():
        assert "'linear' is not known" in await reason_of_failure(plant, "J1")


async def test_job_with_a_work_master_without_recipe_fails_at_once(working: Plant) -> None:
    await working.teach("drawing", LINEAR, dataschema="https://example.org/drawing")
    await working.order(Cause.STORE_AND_START, order("J1", "drawing"))
    assert "holds no SFC recipe" in await reason_of_failure(working, "J1")


async def test_job_with_an_invalid_recipe_fails_at_once_with_its_faults(working: Plant) -> None:
    await working.teach("broken", {"steps": [{"name": "one"}]})
    await working.order(Cause.STORE_AND_START, order("J1", "broken"))
    assert "initial" in await reason_of_failure(working, "J1")


async def test_job_without_equipment_for_its_command_types_fails_at_its_start(
    working: Plant, tool: FakeEquipment
) -> None:
    await working.teach(
        "strange", linear(action("a", "one"), action("b", "two", "weld.v1"), action("c", "three", "x.v1"))
    )
    await working.order(Cause.STORE_AND_START, order("J1", "strange"))
    assert "weld.v1, x.v1" in await reason_of_failure(working, "J1")
    assert tool.commands == []


async def test_wait_for_an_event_without_equipment_is_accepted(working: Plant) -> None:
    await working.teach("scan", linear(pull("s", "one", "any.v1")))
    await working.order(Cause.STORE_AND_START, order("J1", "scan"))
    await working.until_state("J1", JobState.RUNNING)


async def test_a_job_that_fails_at_its_start_is_reported_to_the_mes(working: Plant) -> None:
    await working.order(Cause.STORE_AND_START, JobOrder(job_order_id="J1"))
    await reason_of_failure(working, "J1")
    reported = []
    async for change in changes.follow(working.store, {SCOPE: "0-0"}):
        reported.append(change.cause)
        if change.cause is Cause.FAIL:
            break
    assert reported == [Cause.STORE_AND_START, Cause.FAIL]


async def test_recipe_without_actions_ends_at_its_start(working: Plant) -> None:
    steps = [{"name": "one", "initial": True}, {"name": "two"}]
    await working.teach(
        "empty", {"steps": steps, "transitions": [{"source": "one", "target": "two", "condition": "true"}]}
    )
    await working.order(Cause.STORE_AND_START, order("J1", "empty"))
    await working.until_state("J1", JobState.ENDED)
    assert await working.store.execute("SCARD", working.store.keys.sfc_active_jobs()) == 0


async def test_order_parameters_override_action_parameters_in_the_command(working: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await working.teach("recipe", linear(action("a", "one", parameters={"torque": 12, "angle": 90})))
    nested = Parameter(id="bolt", subparameters=(Parameter(id="size", value="M8"), Parameter(id="count", value=4)))
    given = (Parameter(id="torque", value=1), nested, Parameter(id="serial", value="S1"))
    await working.order(Cause.STORE_AND_START, order("J1", "recipe", job_order_parameters=given))
    await working.until_state("J1", JobState.ENDED)
    (command,) = tool.commands
    assert command.parameters == {
        "torque": 1,
        "angle": 90,
        "bolt": {"size": "M8", "count": 4},
        "serial": "S1",
    }
    job = await working.job("J1")
    assert (command.scope, command.job_id, command.correlation_id) == (SCOPE, "J1", job.correlation_id)


async def test_a_running_job_keeps_the_recipe_it_started_with(working: Plant, tool: FakeEquipment) -> None:
    await working.order(Cause.STORE_AND_START, order("J1"))
    await working.until_state("J1", JobState.RUNNING)
    await working.teach("linear", linear(action("x", "one")))
    working.runs.invalidate("J1")
    tool.replies = obliging
    await working.answer(tool.commands[0])
    await working.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_start_entry_for_a_running_job_is_ignored(working: Plant, tool: FakeEquipment) -> None:
    await working.order(Cause.STORE_AND_START, order("J1"))
    await working.until_state("J1", JobState.RUNNING)
    await working.store.commit(work.add(working.store.keys, SCOPE, WorkKind.START_RECIPE, "J1"))
    tool.replies = obliging
    await working.order(Cause.STORE_AND_START, order("J2"))
    await working.until_state("J2", JobState.ENDED)
    assert [command.action for command in tool.commands if command.job_id == "J1"] == ["a"]


async def test_two_instances_with_the_same_work_begin_one_run(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    asked = await next_work(plant)
    await asyncio.gather(*(Starter(plant.store, plant.runs, plant.dispatch).start(asked) for _ in range(5)))
    assert (await plant.job("J1")).revision == 2
    assert len(plant.runs.outbox.unsent("J1")) == 1


async def test_job_stored_again_with_its_old_id_gets_a_new_run(working: Plant, tool: FakeEquipment) -> None:
    await working.order(Cause.STORE_AND_START, order("J1"))
    await working.until_state("J1", JobState.RUNNING)
    (first,) = tool.commands
    await working.ask(Cause.ABORT, "J1")
    await working.ask(Cause.CLEAR, "J1")
    await working.order(Cause.STORE_AND_START, order("J1"))
    await working.until_state("J1", JobState.RUNNING)
    await working.answer(first, {"late": True})
    run = await runs.load(working.store, "J1")
    assert run
    assert run.run.variables == {}
    assert [command.command_id for command in tool.commands if command.action == "a" and command is not first] != [
        first.command_id
    ]


def instant(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(milliseconds / 1000, UTC)


async def started(plant: Plant) -> list[str]:
    """Name the jobs that began to run, in order."""
    newest = (await changes.latest(plant.store, [SCOPE]))[SCOPE]
    found = []
    async for change in changes.follow(plant.store, {SCOPE: "0-0"}):
        if change.cause is Cause.RUN:
            found.append(change.job_order_id)
        if change.position == newest:
            break
    return found


async def test_jobs_start_by_priority_then_by_time(plant: Plant, clock: Clock) -> None:
    clock.now += 60_000
    early, late = instant(NOW + 1000), instant(NOW + 2000)
    await plant.order(Cause.STORE_AND_START, order("low", priority=-5))
    await plant.order(Cause.STORE_AND_START, order("second"))
    clock.now += 1
    await plant.order(Cause.STORE_AND_START, order("third"))
    await plant.order(Cause.STORE_AND_START, order("due soon", start_time=early, end_time=early))
    await plant.order(Cause.STORE_AND_START, order("due later", start_time=early, end_time=late))
    await plant.order(Cause.STORE_AND_START, order("later", start_time=late))
    await plant.order(Cause.STORE_AND_START, order("urgent", priority=30_000))
    async with plant.at_work():
        await plant.until_state("low", JobState.RUNNING)
    assert await started(plant) == ["urgent", "due soon", "due later", "later", "second", "third", "low"]


async def test_updated_priority_changes_the_start_order(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1", priority=1))
    await plant.order(Cause.STORE_AND_START, order("J2", priority=2))
    await plant.order(Cause.UPDATE, order("J1", priority=3))
    async with plant.at_work():
        await plant.until_state("J2", JobState.RUNNING)
    assert await started(plant) == ["J1", "J2"]


@pytest.mark.parametrize("leaves", [Cause.REVOKE_START, Cause.CANCEL, Cause.ABORT])
async def test_job_removed_from_the_queue_does_not_block_other_starts(plant: Plant, leaves: Cause) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1", priority=9))
    await plant.order(Cause.STORE_AND_START, order("J2"))
    await plant.ask(leaves, "J1")
    async with plant.at_work():
        await plant.until_state("J2", JobState.RUNNING)
        await until_all_is_acknowledged(plant)
    assert await started(plant) == ["J2"]
    assert await plant.store.execute("EXISTS", plant.store.keys.joborder_startable(SCOPE)) == 0


async def test_entry_without_a_start_queue_starts_its_job(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.store.execute("DEL", plant.store.keys.joborder_startable(SCOPE))
    async with plant.at_work():
        await plant.until_state("J1", JobState.RUNNING)


async def test_defect_at_the_start_of_a_job_does_not_fail_others(plant: Plant) -> None:
    await plant.teach("corrupt", LINEAR)
    await plant.order(Cause.STORE_AND_START, order("J1", "corrupt", priority=9))
    await plant.store.execute("HSET", plant.store.keys.workmaster("corrupt"), f"scope:{SCOPE}", "{")
    await plant.order(Cause.STORE_AND_START, order("J2"))
    async with plant.at_work():
        await plant.until_state("J2", JobState.RUNNING)
        failed = await plant.until_state("J1", JobState.ABORTED)
    assert str(failed.error) == "its start met a defect of this software: DecodeError"


async def test_a_job_starts_at_its_start_time_and_not_before(plant: Plant, clock: Clock) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1", start_time=instant(NOW + 5000)))
    async with plant.at_work(), background_task(plant.timers.run(), "timers"):
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J2", JobState.RUNNING)
        assert (await plant.job("J1")).status.state is JobState.ALLOWED_TO_START
        clock.now += 5000
        plant.timers.expect(0)
        await plant.until_state("J1", JobState.RUNNING)
    assert (await plant.job("J1")).started_at == NOW + 5000


async def test_start_time_wakes_the_timer_task(plant: Plant) -> None:
    """Sleep by the wall clock: no other event wakes the sleeping instance."""
    reported: list[int] = []
    plant.jobs.listeners.append(reported.append)
    await plant.order(Cause.STORE, order("J1", start_time=instant(NOW + 5000)))
    assert reported == []
    await plant.ask(Cause.START, "J1")
    await plant.order(Cause.STORE_AND_START, order("J2"))
    assert reported == [NOW + 5000]


@pytest.mark.parametrize("put_off", [Cause.REVOKE_START, Cause.CANCEL, Cause.UPDATE])
async def test_obsolete_start_time_starts_no_job(plant: Plant, clock: Clock, put_off: Cause) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1", start_time=instant(NOW + 5000)))
    if put_off is Cause.UPDATE:
        await plant.order(Cause.UPDATE, order("J1", start_time=instant(NOW + 9000)))
    else:
        await plant.ask(put_off, "J1")
    clock.now += 6000
    async with plant.at_work(), background_task(plant.timers.run(), "timers"):
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J2", JobState.RUNNING)
        due = None if put_off is not Cause.UPDATE else NOW + 9000
        await until(lambda: timer_is(plant, "J1", due))
    assert await started(plant) == ["J2"]


async def timer_is(plant: Plant, job_id: str, due: int | None) -> bool:
    found = await plant.store.execute("ZSCORE", plant.store.keys.sfc_timers(), job_id)
    return (None if found is None else int(found)) == due


async def test_update_to_an_earlier_start_time_starts_the_job(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1", start_time=instant(NOW + 5000)))
    await plant.order(Cause.UPDATE, order("J1", start_time=instant(NOW - 5000)))
    async with plant.at_work():
        await plant.until_state("J1", JobState.RUNNING)


async def test_jobs_that_are_due_together_start_by_priority(plant: Plant, clock: Clock) -> None:
    for number in (1, 3, 2):
        await plant.order(
            Cause.STORE_AND_START, order(f"P{number}", start_time=instant(NOW + 1000 + number), priority=number)
        )
    clock.now += 5000
    async with plant.at_work(), background_task(plant.timers.run(), "timers"):
        await plant.until_state("P1", JobState.RUNNING)
    assert await started(plant) == ["P3", "P2", "P1"]


async def test_job_of_a_newer_release_waits_without_blocking_others(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    key = plant.store.keys.joborder("J1")
    written = await job_of_a_newer_release(plant, key)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J2", JobState.ENDED)
        assert await plant.store.execute("ZCARD", plant.store.keys.joborder_startable(SCOPE)) == 1
        assert await dead_letters.load_all(plant.store) == {}
        await plant.store.execute("HSET", key, version.FIELD, written)
        await plant.until_state("J1", JobState.ENDED)


async def job_of_a_newer_release(plant: Plant, key: str) -> str:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    written: str = await plant.store.execute("HGET", key, version.FIELD)
    await plant.store.execute("HSET", key, version.FIELD, 99)
    return written


async def test_entry_of_an_unreadable_job_starts_the_first_of_the_queue(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    for job in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job))
    keys = plant.store.keys
    await plant.store.execute("DEL", keys.joborder_startable(SCOPE), keys.sfc_work(SCOPE))
    queued = jobs.enqueue_start(keys, await plant.job("J2"))
    await plant.store.commit(join((queued, work.add(keys, SCOPE, WorkKind.START_RECIPE, "J1"))))
    await plant.store.execute("HSET", keys.joborder("J1"), "order", "{")
    async with plant.at_work():
        await plant.until_state("J2", JobState.ENDED)
