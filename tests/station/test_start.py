"""A job that is allowed to start begins its recipe, or fails at once and says why."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from edge.model.isa95 import JobOrder, Parameter
from edge.model.job_state import Cause, JobState
from edge.station.start import Starter
from edge.store import changes, jobs, resources, runs, work
from edge.store.work import WorkKind
from tests.station.plant import (
    KEEP_ENDED_MS,
    LINEAR,
    NOW,
    SCOPE,
    FakeEquipment,
    Plant,
    action,
    linear,
    obliging,
    order,
    pull,
)


async def reason_of_failure(plant: Plant, job_id: str) -> str:
    """Wait until a job has failed; check all that is written of it, and give the reason."""
    job = await plant.until_state(job_id, JobState.ABORTED)
    response = await jobs.load_response(plant.store, job)
    assert job.error
    assert response
    assert response.description
    assert response.description.text == job.error
    assert response.end_time
    store, keys = plant.store, plant.store.keys
    assert await store.execute("ZSCORE", keys.joborder_open(SCOPE), job_id) is None
    assert float(await store.execute("ZSCORE", keys.sfc_timers(), job_id)) == NOW + KEEP_ENDED_MS
    assert await store.execute("XLEN", keys.sfc_work(SCOPE)) == 0
    return job.error


@pytest.fixture
async def working(plant: Plant) -> AsyncIterator[Plant]:
    async with plant.at_work():
        yield plant


async def test_a_job_without_a_work_master_fails_at_once(working: Plant) -> None:
    await working.order(Cause.STORE_AND_START, JobOrder(job_order_id="J1"))
    assert "names no Work Master" in await reason_of_failure(working, "J1")


async def test_a_job_whose_work_master_was_removed_meanwhile_fails_at_once(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.store.commit(resources.remove_work_master(plant.store.keys, SCOPE, "linear"))
    async with plant.at_work():
        assert "'linear' is not known" in await reason_of_failure(plant, "J1")


async def test_a_job_whose_work_master_is_no_recipe_fails_at_once(working: Plant) -> None:
    await working.teach("drawing", LINEAR, dataschema="https://example.org/drawing")
    await working.order(Cause.STORE_AND_START, order("J1", "drawing"))
    assert "holds no SFC recipe" in await reason_of_failure(working, "J1")


async def test_a_job_whose_recipe_is_unsound_fails_at_once_with_its_faults(working: Plant) -> None:
    await working.teach("broken", {"steps": [{"name": "one"}]})
    await working.order(Cause.STORE_AND_START, order("J1", "broken"))
    assert "initial" in await reason_of_failure(working, "J1")


async def test_a_job_for_whose_commands_there_is_no_equipment_fails_at_once(
    working: Plant, tool: FakeEquipment
) -> None:
    await working.teach(
        "strange", linear(action("a", "one"), action("b", "two", "weld.v1"), action("c", "three", "x.v1"))
    )
    await working.order(Cause.STORE_AND_START, order("J1", "strange"))
    assert "weld.v1, x.v1" in await reason_of_failure(working, "J1")
    assert tool.commands == []


async def test_a_wait_needs_no_equipment_to_be_known(working: Plant) -> None:
    await working.teach("scan", linear(pull("s", "one", "any.v1")))
    await working.order(Cause.STORE_AND_START, order("J1", "scan"))
    await working.until_state("J1", JobState.RUNNING)


async def test_a_job_that_fails_at_its_start_tells_the_mes(working: Plant) -> None:
    await working.order(Cause.STORE_AND_START, JobOrder(job_order_id="J1"))
    await reason_of_failure(working, "J1")
    told = []
    async for change in changes.follow(working.store, {SCOPE: "0-0"}):
        told.append(change.cause)
        if change.cause is Cause.FAIL:
            break
    assert told == [Cause.STORE_AND_START, Cause.FAIL]


async def test_a_recipe_of_steps_without_actions_ends_as_it_starts(working: Plant) -> None:
    steps = [{"name": "one", "initial": True}, {"name": "two"}]
    await working.teach(
        "empty", {"steps": steps, "transitions": [{"source": "one", "target": "two", "condition": "true"}]}
    )
    await working.order(Cause.STORE_AND_START, order("J1", "empty"))
    await working.until_state("J1", JobState.ENDED)
    assert await working.store.execute("SCARD", working.store.keys.sfc_active_jobs()) == 0


async def test_the_parameters_of_the_order_reach_the_equipment_and_the_recipe_has_the_last_word(
    working: Plant, tool: FakeEquipment
) -> None:
    tool.replies = obliging
    await working.teach("recipe", linear(action("a", "one", parameters={"torque": 12, "angle": 90})))
    nested = Parameter(id="bolt", subparameters=(Parameter(id="size", value="M8"), Parameter(id="count", value=4)))
    given = (Parameter(id="torque", value=1), nested, Parameter(id="serial", value="S1"))
    await working.order(Cause.STORE_AND_START, order("J1", "recipe", job_order_parameters=given))
    await working.until_state("J1", JobState.ENDED)
    (command,) = tool.commands
    assert command.parameters == {
        "torque": 12,
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
    working.runs.forget("J1")
    tool.replies = obliging
    await working.answer(tool.commands[0])
    await working.until_state("J1", JobState.ENDED)
    assert tool.told() == ["a", "b"]


async def test_an_entry_for_a_job_that_runs_already_is_acknowledged_and_changes_nothing(
    working: Plant, tool: FakeEquipment
) -> None:
    await working.order(Cause.STORE_AND_START, order("J1"))
    await working.until_state("J1", JobState.RUNNING)
    await working.runs.write(work.add(working.store.keys, SCOPE, WorkKind.START_RECIPE, "J1"))
    tool.replies = obliging
    await working.order(Cause.STORE_AND_START, order("J2"))
    await working.until_state("J2", JobState.ENDED)
    assert [command.action for command in tool.commands if command.job_id == "J1"] == ["a"]


async def test_two_instances_with_the_same_work_begin_one_run(plant: Plant) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    asked = plant.runs.taken.get_nowait()
    await asyncio.gather(*(Starter(plant.store, plant.runs, plant.dispatch).start(asked) for _ in range(5)))
    assert (await plant.job("J1")).revision == 2
    assert plant.runs.taken.qsize() == 1


async def test_a_job_stored_again_under_its_old_id_has_a_run_of_its_own(working: Plant, tool: FakeEquipment) -> None:
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
    assert [each.command_id for each in tool.commands if each.action == "a" and each is not first] != [first.command_id]
