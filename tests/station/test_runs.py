"""What an instance holds of a run is a copy; the store has the last word."""

import asyncio
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.errors import Unavailable
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Answer, Ignored, Pause, Tick
from edge.station.decision import Asked, Decision, NotAllowed
from edge.station.runs import NoRun, Progress
from edge.store import runs
from edge.store.commit import Absent, Commit, Stale
from edge.store.keys import GROUP
from tests.station.plant import (
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    instance,
    obliging,
    order,
)
from tests.store.servers import relay_to


async def started(plant: Plant, tool: FakeEquipment) -> str:
    """Start the job J1 and give the id of its first command."""
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    return tool.commands[0].command_id


async def test_a_refusal_rests_on_the_store_and_not_on_what_is_held(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await started(plant, tool)
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        await other.runs.load("J1")
        await plant.ask(Cause.PAUSE, "J1")
        assert (await other.ask(Cause.RESUME, "J1")).status == 1
    assert (await plant.job("J1")).status.state is JobState.RUNNING


async def test_a_run_that_moved_meanwhile_is_decided_again(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    first = await started(plant, tool)
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        await other.runs.load("J1")
        await plant.answer(tool.commands[0])
        assert isinstance(await other.runs.signal("J1", Tick()), Decision)
        assert isinstance(await other.runs.signal("J1", Answer(first, ok=True)), Ignored)


async def test_a_guard_of_the_caller_that_fails_is_told(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, tool)
    taken = plant.store.keys.workmaster("linear")
    assert await plant.runs.signal("J1", Tick(), also=lambda _: Commit(guards=(Absent(taken),))) == Stale(taken)


async def test_a_job_without_a_run_has_none(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    assert await plant.runs.signal("J1", Tick()) == NoRun()
    assert await plant.runs.signal("nobody", Tick()) == NoRun()


async def test_a_method_the_state_does_not_allow_is_not_allowed(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, tool)
    assert await plant.runs.signal("J1", Pause(), Asked(Cause.RESUME)) == NotAllowed()


async def test_many_signals_at_a_time_all_count(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, tool)
    before = await runs.load(plant.store, "J1")
    results = await asyncio.gather(*(plant.runs.signal("J1", Tick()) for _ in range(20)))
    after = await runs.load(plant.store, "J1")
    assert all(isinstance(result, Decision) for result in results)
    assert before
    assert after
    assert after.revision == before.revision + 20


async def test_a_commit_that_was_done_though_its_reply_was_lost_is_not_done_again(
    tmp_path: Path, redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    first = await started(plant, tool)
    answer = Answer(first, ok=True, data={"torque": 1})

    async def lose(request: bytes) -> bool:
        return b"EVALSHA" not in request or b"sfc:execution" not in request

    async with relay_to(tmp_path, redis.url) as relay:
        shaky = RedisSettings(url=relay.url, prefix=redis.prefix)
        async with instance(shaky, {TIGHTEN: tool}, clock, consumer="far") as far:
            await far.runs.load("J1")
            deliver, relay.deliver = relay.deliver, lose
            with pytest.raises(Unavailable):
                await far.runs.signal("J1", answer)
            relay.deliver = deliver
            assert far.runs.in_doubt.is_set()
            assert isinstance(await far.runs.signal("J1", answer), Ignored)
    stored = await runs.load(plant.store, "J1")
    assert stored
    assert {each.action: each.attempt for each in stored.run.associations.values()} == {"a": 1, "b": 1}


async def test_work_that_is_done_is_acknowledged_by_the_next_commit_of_its_scope(
    plant: Plant, tool: FakeEquipment
) -> None:
    first = await started(plant, tool)
    await plant.runs.signal("J1", Answer(first, ok=True))
    asked = plant.runs.taken.get_nowait()
    plant.runs.done(asked)
    await plant.runs.signal("J1", Tick())
    stream = plant.store.keys.sfc_work(SCOPE)
    assert await plant.store.execute("XLEN", stream) == 0
    assert (await plant.store.execute("XPENDING", stream, GROUP))["pending"] == 0


async def test_what_is_done_stays_to_be_acknowledged_while_the_store_is_gone(
    tmp_path: Path, redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    asked = plant.runs.taken.get_nowait()

    async def lose(_: bytes) -> bool:
        return False

    async with relay_to(tmp_path, redis.url) as relay:
        shaky = RedisSettings(url=relay.url, prefix=redis.prefix)
        async with instance(shaky, {TIGHTEN: tool}, clock) as far:
            deliver, relay.deliver = relay.deliver, lose
            far.runs.done(asked)
            with pytest.raises(Unavailable):
                await far.runs.flush()
            relay.deliver = deliver
            await far.runs.flush()
    assert await plant.store.execute("XLEN", plant.store.keys.sfc_work(SCOPE)) == 0


async def test_who_watches_sees_each_decision_with_its_steps_and_requests(plant: Plant, tool: FakeEquipment) -> None:
    seen: list[Progress] = []
    plant.runs.watchers.append(seen.append)
    tool.replies = obliging
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.ENDED)
    assert [[(each.step, each.active) for each in progress.steps] for progress in seen] == [
        [("one", True)],
        [("one", False), ("two", True)],
        [],
    ]
    assert [[each.action for each in progress.requests] for progress in seen] == [["a"], ["b"], []]


async def test_a_job_that_has_ended_is_held_no_longer(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, tool)
    await plant.ask(Cause.ABORT, "J1")
    await plant.store.execute("DEL", plant.store.keys.sfc_execution("J1"))
    assert await plant.runs.held("J1") is None
