"""The worker executes the work of each job in order and acknowledges it last."""

import asyncio

import pytest

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState, SubState
from edge.sfc.signal import Phase
from edge.station.equipment import Command
from edge.station.start import Starter
from edge.station.worker import Worker
from edge.store import responses, runs
from edge.store.background import Heartbeat
from edge.store.open_store import open_store
from edge.store.work import Work
from tests.station.plant import (
    KEEP_ENDED_MS,
    NOW,
    PHOTO,
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
    results_of,
    unacknowledged,
    until_all_is_acknowledged,
    until_true,
)
from tests.store.beat_clock import BeatClock

PARALLEL = {
    "steps": [{"name": name, "initial": name == "begin"} for name in ("begin", "left", "right", "end")],
    "branches": [{"name": "both", "type": "simultaneous", "branches": [["left"], ["right"]]}],
    "transitions": [
        {"source": "begin", "target": "both", "condition": "true"},
        {"source": "both", "target": "end", "condition": "true"},
    ],
    "actions": [action("l", "left"), action("r", "right", PHOTO)],
}


async def test_completed_job_leaves_consistent_records(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        job = await plant.until_state("J1", JobState.ENDED, SubState.COMPLETED)
        store, keys = plant.store, plant.store.keys
        assert tool.received() == ["a", "b"]
        assert (job.started_at, job.ended_at, job.error) == (NOW, NOW, None)
        response = await responses.load(store, job)
        assert response
        assert response.job_response_id == job.correlation_id
        assert [state.state_number for state in response.job_state] == [5, 1]
        assert [parameter.id for parameter in results_of(response)] == ["a", "b"]
        run = await runs.load(store, "J1")
        assert run
        assert run.run.ended
        assert await store.execute("ZRANGE", keys.joborder_list(SCOPE), 0, -1) == ["J1"]
        assert await store.execute("ZRANGE", keys.joborder_open(SCOPE), 0, -1) == []
        assert await store.execute("ZRANGE", keys.jobresponse_list(SCOPE), 0, -1) == [job.correlation_id]
        assert float(await store.execute("ZSCORE", keys.sfc_timers(), "J1")) == NOW + KEEP_ENDED_MS
        await until_all_is_acknowledged(plant)
        assert await store.execute("SCARD", keys.sfc_active_jobs()) == 0


@pytest.mark.untraced
async def test_many_jobs_run_concurrently(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    async with plant.at_work():
        await asyncio.gather(*(plant.order(Cause.STORE_AND_START, order(f"J{number}")) for number in range(60)))
        for number in range(60):
            await plant.until_state(f"J{number}", JobState.ENDED)
    assert len(tool.commands) == 120
    assert len({command.command_id for command in tool.commands}) == 120


async def test_failed_job_is_aborted_and_its_equipment_stopped(plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach("parallel", PARALLEL)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "parallel"))
        await until_true(lambda: len(tool.commands) == 2)
        await plant.answer(tool.commands[0], error="says \"no\" to 'it'")
        job = await plant.until_state("J1", JobState.ABORTED)
        await until_true(lambda: tool.received(Phase.STOP) == ["r"])
    assert str(job.error) == "action 'l' of step 'left' failed: says \"no\" to 'it'"
    response = await responses.load(plant.store, job)
    assert response
    assert response.description
    assert response.description.text == str(job.error)
    assert await plant.store.execute("SCARD", plant.store.keys.sfc_active_jobs()) == 0


async def test_disconnected_equipment_is_retried_until_it_returns(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    tool.reachable = False
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.refused >= 2)
        assert await unacknowledged(plant) == 1
        tool.reachable = True
        await plant.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_disconnected_equipment_delays_no_other_job(plant: Plant, equipment: dict[str, FakeEquipment]) -> None:
    camera = FakeEquipment("camera")
    equipment[PHOTO] = camera
    both = Plant(plant.store, equipment, plant.runs.clock)
    tool = equipment[TIGHTEN]
    tool.reachable = False
    camera.replies = obliging
    await both.teach("photo", linear(action("p", "one", PHOTO)))
    async with both.at_work():
        await both.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.refused > 0)
        await both.order(Cause.STORE_AND_START, order("J2", "photo"))
        await both.until_state("J2", JobState.ENDED)
        assert (await both.job("J1")).status.state is JobState.RUNNING


async def test_disconnected_equipment_does_not_delay_stops_of_others(
    plant: Plant, equipment: dict[str, FakeEquipment]
) -> None:
    camera = equipment[PHOTO] = FakeEquipment("camera")
    tool = equipment[TIGHTEN]
    both = Plant(plant.store, equipment, plant.runs.clock)
    await both.teach("parallel", PARALLEL)
    async with both.at_work():
        await both.order(Cause.STORE_AND_START, order("J1", "parallel"))
        await until_true(lambda: bool(tool.commands and camera.commands))
        tool.reachable = False
        await both.ask(Cause.ABORT, "J1")
        await until_true(lambda: camera.received(Phase.STOP) == ["r"])
        tool.reachable = True
        await until_true(lambda: tool.received(Phase.STOP) == ["l"])
    assert camera.received(Phase.STOP) == ["r"]


async def test_stop_reaches_equipment_after_its_job_was_cleared(plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: bool(tool.commands))
        (start,) = tool.commands
        tool.reachable = False
        await plant.ask(Cause.ABORT, "J1")
        await until_true(lambda: tool.refused > 0)
        await plant.ask(Cause.CLEAR, "J1")
        await plant.teach("other", linear(action("x", "new")))
        await plant.order(Cause.STORE, order("J1", "other"))
        tool.reachable = True
        await until_true(lambda: tool.received(Phase.STOP) == ["a"])
    stop = tool.commands[-1]
    assert (stop.command_id, stop.type_id, stop.scope) == (start.command_id, start.type_id, start.scope)
    assert (stop.job_id, stop.correlation_id, stop.attempt) == ("J1", start.correlation_id, 1)


async def test_command_of_an_aborted_job_is_never_started(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.reachable = False
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.refused > 0)
        async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
            await other.ask(Cause.ABORT, "J1")
            tool.reachable = True
            async with other.at_work():
                await until_all_is_acknowledged(plant)
    assert tool.received(Phase.START) == []
    assert tool.received(Phase.STOP) == ["a"]


async def test_defect_in_one_job_does_not_stop_others(plant: Plant, tool: FakeEquipment) -> None:
    def reply(command: Command) -> None:
        if command.job_id == "J1":
            raise ZeroDivisionError

    tool.replies = reply
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await until_true(lambda: len(tool.commands) == 2)
        tool.replies = obliging
        await plant.answer(next(command for command in tool.commands if command.job_id == "J2"))
        await plant.until_state("J2", JobState.ENDED)


@pytest.mark.parametrize("name", ["torque.one", "a b", "'quoted' \"twice\"", "größe 螺丝", "a/b%2F", "a:b@c#1"])
async def test_action_with_any_name_is_executed(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock, name: str
) -> None:
    await plant.teach("named", linear(action(name, "one"), action("then", f"step {name}")))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "named"))
        await until_true(lambda: tool.received() == [name])
    tool.replies = obliging
    async with instance(redis, {TIGHTEN: tool}, clock) as other, other.at_work():
        await other.answer(tool.commands[0], {"value": 1})
        job = await other.until_state("J1", JobState.ENDED)
    response = await responses.load(plant.store, job)
    assert response
    assert [parameter.id for parameter in results_of(response)] == [name, "then"]


async def test_pause_resume_stop_and_abort_reach_run_and_equipment(plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        for number, method in enumerate((Cause.STOP, Cause.ABORT)):
            job_id = f"J{number}"
            await plant.order(Cause.STORE_AND_START, order(job_id))
            await until_true(lambda: len(tool.received()) == number + 1)  # noqa: B023
            await plant.ask(Cause.PAUSE, job_id)
            assert (await runs.load(plant.store, job_id)).run.paused  # type: ignore[union-attr]
            await plant.ask(Cause.RESUME, job_id)
            assert not (await runs.load(plant.store, job_id)).run.paused  # type: ignore[union-attr]
            await plant.ask(method, job_id)
            assert (await runs.load(plant.store, job_id)).run.ended  # type: ignore[union-attr]
            await until_true(lambda: len(tool.received(Phase.STOP)) == number + 1)  # noqa: B023
    stops = [command for command in tool.commands if command.phase is Phase.STOP]
    starts = [command for command in tool.commands if command.phase is Phase.START]
    assert [stop.command_id for stop in stops] == [start.command_id for start in starts]


async def test_cancelled_worker_always_ends(plant: Plant) -> None:
    for _ in range(50):
        async with asyncio.timeout(60), background_task(plant.worker.run(), "worker"):
            await plant.store.execute("PING")


async def test_command_requested_by_the_command_line_is_sent(
    plant: Plant, tool: FakeEquipment, clock: Clock, redis: RedisSettings
) -> None:
    async with plant.at_work(), open_store(redis, consumer=None) as visited:
        visitor = Plant(visited, {}, clock)
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        await visitor.ask(Cause.PAUSE, "J1")
        await plant.answer(tool.commands[0])
        await visitor.ask(Cause.RESUME, "J1")
        await until_true(lambda: tool.received() == ["a", "b"])


class StuckStarter(Starter):
    """A starter that comes to no end, as while the store is away."""

    stuck = False

    async def start(self, asked: Work) -> None:
        self.stuck = True
        await asyncio.Event().wait()


async def test_busy_worker_is_not_reported_as_stalled(plant: Plant) -> None:
    clock = BeatClock()
    plant.store.heartbeat = Heartbeat(patience_s=25, clock=clock)
    plant.store.heartbeat.expect(["worker"])
    await plant.order(Cause.STORE_AND_START, order("J1"))
    starter = StuckStarter(plant.store, plant.runs, plant.dispatch)
    busy = Worker(plant.store, (SCOPE,), plant.runs, starter, max_parallel=1, beat_s=0.01)
    async with background_task(busy.run(), "worker"):
        await until_true(lambda: starter.stuck)
        for _ in range(3):
            await clock.advance(20)
            assert plant.store.heartbeat.stalled() == []
