"""Runs are cached by an instance; the store decides."""

import asyncio
from pathlib import Path

import msgspec
import pytest
from structlog.testing import capture_logs

from edge.access.locks import find_locks
from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.model.job_state import Cause, JobState
from edge.model.lock import LockKind
from edge.sfc.run import LockChange
from edge.sfc.signal import Answer, Ignored, Pause, Tick
from edge.station.decision import Decision, MethodRequest, NotAllowed
from edge.station.equipment import EquipmentAnswer
from edge.station.runs import NoRun, Progress, Runs, lock_holders, plan_locks
from edge.station.sender import remove_sent
from edge.store import runs
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, Stale
from tests.station.plant import (
    KEEP_ENDED_MS,
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
    until_all_is_acknowledged,
    until_true,
)
from tests.store.servers import relay_to


async def started(plant: Plant, tool: FakeEquipment) -> str:
    """Start the job J1 and return the id of its first command."""
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    return tool.commands[0].command_id


async def test_refusal_is_decided_by_the_store_not_by_the_cache(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await started(plant, tool)
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        await other.runs.load("J1")
        await plant.ask(Cause.PAUSE, "J1")
        assert (await other.ask(Cause.RESUME, "J1")).status == 1
    assert (await plant.job("J1")).status.state is JobState.RUNNING


async def test_decision_is_repeated_after_a_concurrent_change(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    first = await started(plant, tool)
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other:
        await other.runs.load("J1")
        await plant.answer(tool.commands[0])
        assert isinstance(await other.runs.signal("J1", Tick()), Decision)
        assert isinstance(await other.runs.signal("J1", Answer(first, ok=True)), Ignored)


async def test_failed_guard_of_the_caller_is_returned_as_stale(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, tool)
    taken = plant.store.keys.workmaster("linear")
    assert await plant.runs.signal("J1", Tick(), also=lambda _: Commit(guards=(Absent(taken),))) == Stale(taken)


async def test_job_without_a_run_is_loaded_as_none(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    assert await plant.runs.signal("J1", Tick()) == NoRun()
    assert await plant.runs.signal("nobody", Tick()) == NoRun()


async def test_method_not_allowed_in_the_job_state_is_refused(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, tool)
    assert await plant.runs.signal("J1", Pause(), MethodRequest(Cause.RESUME)) == NotAllowed()


async def test_concurrent_signals_are_all_applied(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, tool)
    before = await runs.load(plant.store, "J1")
    results = await asyncio.gather(*(plant.runs.signal("J1", Tick()) for _ in range(20)))
    after = await runs.load(plant.store, "J1")
    assert all(isinstance(result, Decision) for result in results)
    assert before
    assert after
    assert after.revision == before.revision + 20


async def test_commit_with_a_lost_reply_is_not_repeated(
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
            assert far.runs.uncertain.get_nowait() == "J1"
            assert isinstance(await far.runs.signal("J1", answer), Ignored)
    stored_run = await runs.load(plant.store, "J1")
    assert stored_run
    assert {association.action: association.attempt for association in stored_run.run.associations.values()} == {
        "a": 1,
        "b": 1,
    }


async def test_next_commit_removes_sent_commands_from_the_outbox(plant: Plant, tool: FakeEquipment) -> None:
    first = await started(plant, tool)
    await plant.runs.signal("J1", Answer(first, ok=True))
    (second,) = plant.runs.outbox.unsent("J1")
    plant.runs.outbox.mark_sent("J1", second)
    assert await runs.load_outbox(plant.store, "J1", plant.store.consumer) == (second,)
    await plant.runs.signal("J1", Tick())
    assert await runs.load_outbox(plant.store, "J1", plant.store.consumer) == ()


async def test_sent_commands_stay_in_the_outbox_during_a_store_outage(
    tmp_path: Path, redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await started(plant, tool)
    await plant.runs.signal("J1", Answer(tool.commands[0].command_id, ok=True))

    async def lose(_: bytes) -> bool:
        return False

    async with relay_to(tmp_path, redis.url) as relay:
        shaky = RedisSettings(url=relay.url, prefix=redis.prefix)
        async with instance(shaky, {TIGHTEN: tool}, clock) as far:
            await far.runs.load("J1")
            (outgoing,) = far.runs.outbox.unsent("J1")
            far.runs.outbox.mark_sent("J1", outgoing)
            deliver, relay.deliver = relay.deliver, lose
            with pytest.raises(Unavailable):
                await remove_sent(far.runs, "J1")
            relay.deliver = deliver
            await remove_sent(far.runs, "J1")
    assert await runs.load_outbox(plant.store, "J1", plant.store.consumer) == ()


async def test_removal_of_a_sent_command_keeps_the_run_in_the_cache(plant: Plant, tool: FakeEquipment) -> None:
    """Each command of slow equipment cost one reading of its run."""
    await started(plant, tool)
    await remove_sent(plant.runs, "J1")
    assert await runs.load_outbox(plant.store, "J1", plant.store.consumer) == ()
    loaded = plant.runs.cached("J1")
    assert loaded
    assert loaded.stored.outbox == ()


async def test_command_removed_while_its_run_is_read_is_not_sent_again(
    tmp_path: Path, redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    """It came back into the outbox; a job that ended with it remained active in the store."""
    await started(plant, tool)
    async with relay_to(tmp_path, redis.url) as relay:
        shaky = RedisSettings(url=relay.url, prefix=redis.prefix)
        async with instance(shaky, {TIGHTEN: tool}, clock, consumer=plant.store.consumer) as far:
            loaded = await far.runs.load("J1")
            assert loaded
            (outgoing,) = far.runs.outbox.unsent("J1")
            far.runs.outbox.mark_sent("J1", outgoing)
            deliver = relay.deliver

            async def remove_between(request: bytes) -> bool:
                if far.store.keys.joborder("J1").encode() in request:
                    relay.deliver = deliver
                    await plant.store.commit(runs.remove_sent(far.store.keys, loaded.stored, (), plant.store.consumer))
                    without = msgspec.structs.replace(loaded.stored, outbox=())
                    far.runs.cache(msgspec.structs.replace(loaded, stored=without))
                return True

            relay.deliver = remove_between
            again = await far.runs.load("J1")
            assert again
            assert again.stored.outbox == ()
            assert far.runs.outbox.unsent("J1") == ()


@pytest.mark.untraced
async def test_reordered_replies_lose_no_command(plant: Plant, tool: FakeEquipment) -> None:
    """The outbox loses what was sent while a decision adds to it: the later listener call has the older state."""
    await plant.teach("long", linear(*(action(f"a{number}", f"s{number}") for number in range(60))))
    tool.replies = obliging
    async with plant.at_work():
        await asyncio.gather(*(plant.order(Cause.STORE_AND_START, order(f"J{n}", "long")) for n in range(10)))
        tidying = asyncio.create_task(_tidy_all_the_time(plant, 10))
        for number in range(10):
            await plant.until_state(f"J{number}", JobState.ENDED)
        tidying.cancel()
    assert len({command.command_id for command in tool.commands}) == 600


async def _tidy_all_the_time(plant: Plant, count: int) -> None:
    while True:
        await asyncio.gather(*(remove_sent(plant.runs, f"J{number}") for number in range(count)))
        await asyncio.sleep(0)


async def test_listener_receives_every_decision_with_steps_and_requests(plant: Plant, tool: FakeEquipment) -> None:
    seen: list[Progress] = []
    plant.runs.listeners.append(seen.append)
    tool.replies = obliging
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.ENDED)
    assert [[(step.step, step.active) for step in progress.steps] for progress in seen] == [
        [("one", True)],
        [("one", False), ("two", True)],
        [],
    ]
    assert [[request.action for request in progress.requests] for progress in seen] == [["a"], ["b"], []]


async def test_failing_listener_is_logged_and_affects_no_other(plant: Plant, tool: FakeEquipment) -> None:
    """The decision is committed by then; the answer counted as ignored before."""
    seen: list[str] = []

    def fail(progress: Progress) -> None:
        seen.append(f"failing {progress.loaded.job.status.state.name}")
        raise ZeroDivisionError

    plant.runs.listeners.append(fail)
    plant.runs.listeners.append(lambda progress: seen.append(progress.loaded.job.status.state.name))
    first = await started(plant, tool)
    seen.clear()
    with capture_logs() as logs:
        await plant.answers.answer(EquipmentAnswer(first, {"torque": 1}))
    assert seen == ["failing RUNNING", "RUNNING"]
    assert [entry["event"] for entry in logs] == ["listener failed"]


async def test_ended_job_is_removed_from_the_cache(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, tool)
    await plant.ask(Cause.ABORT, "J1")
    await plant.store.execute("DEL", plant.store.keys.sfc_execution("J1"))
    assert await plant.runs.get("J1") is None


async def test_cached_outboxes_of_jobs_ended_by_the_other_instances_are_evicted(
    plant: Plant, tool: FakeEquipment
) -> None:
    few = Runs(plant.store, plant.runs.clock, KEEP_ENDED_MS, max_cached=3)
    for number in range(6):
        await plant.order(Cause.STORE_AND_START, order(f"J{number}"))
    async with plant.at_work():
        await until_true(lambda: len(tool.received()) == 6)
        await until_all_is_acknowledged(plant)
    for number in range(6):
        await few.load(f"J{number}")
    assert [index for index in range(6) if few.outbox.get(f"J{index}")] == [3, 4, 5]


async def test_runs_are_busy_while_jobs_make_decisions(plant: Plant, tool: FakeEquipment) -> None:
    assert not plant.runs.is_busy()
    await started(plant, tool)
    await plant.answer(tool.commands[0])
    assert plant.runs.is_busy()
    await until_true(lambda: not plant.runs.is_busy())


async def change(store: Store, job_id: str, locks: LockChange) -> bool:
    plan = await plan_locks(store, job_id, SCOPE, locks)
    return plan is not None and isinstance(await store.commit(plan), Committed)


async def queues(store: Store) -> dict[str, list[str]]:
    return {
        lock.object_id: [lock.lock.holder.job_id, *(waiter.job_id for waiter in lock.lock.waiters)]
        for lock in await find_locks(store, (LockKind.EQUIPMENT,), ())
        if lock.lock
    }


async def test_job_waits_for_one_lock_at_a_time_in_lock_order(plant: Plant) -> None:
    store = plant.store
    assert await change(store, "J1", LockChange(claimed=("b",)))
    assert await change(store, "J2", LockChange(claimed=("a", "b", "c")))
    assert await queues(store) == {"a": ["J2"], "b": ["J1", "J2"]}
    assert (await lock_holders(store, ("a", "b", "c"))).keys() == {"a", "b"}


async def test_lock_released_and_claimed_again_is_queued_last(plant: Plant) -> None:
    store = plant.store
    for job in ("J1", "J2"):
        assert await change(store, job, LockChange(claimed=("a",)))
    assert await change(store, "J1", LockChange(released=frozenset("a"), claimed=("a",)))
    assert await queues(store) == {"a": ["J2", "J1"]}


async def test_grant_of_a_deleted_lock_is_not_confirmed(plant: Plant) -> None:
    store = plant.store
    assert await change(store, "J1", LockChange(claimed=("a",)))
    await store.execute("DEL", store.keys.locks("equipment"))
    assert await change(store, "J2", LockChange(claimed=("a",)))
    assert not await change(store, "J1", LockChange(granted=("a",)))


async def test_lock_plan_is_stale_after_a_concurrent_change(plant: Plant) -> None:
    store = plant.store
    plan = await plan_locks(store, "J1", SCOPE, LockChange(claimed=("a",)))
    assert plan is not None
    assert await change(store, "J2", LockChange(claimed=("a",)))
    assert await store.commit(plan) == Stale(store.keys.locks("equipment"))


async def test_empty_lock_change_has_no_guards(plant: Plant) -> None:
    plan = await plan_locks(plant.store, "J1", SCOPE, LockChange())
    assert plan is not None
    assert not plan.guards
