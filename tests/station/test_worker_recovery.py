"""Work interrupted by a lost process, connection or server is completed after its return."""

import asyncio
from pathlib import Path

import pytest

from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.model.job_state import Cause, JobState
from edge.station.equipment import Command
from edge.store import dead_letters, work
from edge.store.commit import operation
from edge.store.dead_letters import LetterKind
from tests.station.plant import (
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    action,
    instance,
    linear,
    next_work,
    obliging,
    order,
    unacknowledged,
    until_all_is_acknowledged,
    until_true,
)
from tests.store.servers import own_server, relay_to


async def begin(plant: Plant, job_id: str, master: str = "linear") -> None:
    """Begin a job and commit its first decision, yet send nothing: as a process that dies there."""
    await plant.order(Cause.STORE_AND_START, order(job_id, master))
    await plant.starter.start(await next_work(plant))


async def test_commit_without_send_is_sent_after_the_restart(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await begin(plant, "J1")
    decided = next(iter((await plant.runs.get("J1")).stored.run.associations.values()))  # type: ignore[union-attr]
    tool.replies = obliging
    async with instance(redis, {TIGHTEN: tool}, clock) as back, back.at_work():
        await back.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]
    assert tool.commands[0].command_id == decided.command_id


async def test_job_is_started_after_a_crash_before_its_start(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    tool.replies = obliging
    async with instance(redis, {TIGHTEN: tool}, clock) as back, back.at_work():
        await back.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_a_command_that_was_answered_is_not_sent_again(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    await begin(plant, "J1")
    (outgoing,) = plant.runs.outbox.unsent("J1")
    loaded = await plant.runs.get("J1")
    assert loaded
    await plant.dispatch.perform(loaded, outgoing)
    await plant.answer(tool.commands[0])
    tool.replies = obliging
    async with instance(redis, {TIGHTEN: tool}, clock) as back, back.at_work():
        await back.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_restart_after_a_clean_stop_repeats_no_command(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
    assert await unacknowledged(plant) == 0
    async with instance(redis, {TIGHTEN: tool}, clock) as back, back.at_work():
        await back.order(Cause.STORE_AND_START, order("J2"))
        await until_true(lambda: len(tool.commands) == 2)
    assert [command.job_id for command in tool.commands] == ["J1", "J2"]


async def test_command_interrupted_by_a_stop_is_sent_by_the_next_start(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    sending = asyncio.Event()

    class Slow(FakeEquipment):
        async def send(self, command: Command) -> None:
            sending.set()
            await asyncio.Event().wait()

    async with instance(redis, {TIGHTEN: Slow()}, clock) as slow, slow.at_work():
        await slow.order(Cause.STORE_AND_START, order("J1"))
        await sending.wait()
    assert await unacknowledged(plant) == 1
    tool.replies = obliging
    async with instance(redis, {TIGHTEN: tool}, clock) as back, back.at_work():
        await back.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b"]


async def test_work_is_shared_among_instances_and_each_job_runs_once(
    redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    async with instance(redis, {TIGHTEN: tool}, clock, consumer="other") as other, plant.at_work(), other.at_work():
        callers = (plant, other)
        await asyncio.gather(
            *(callers[number % 2].order(Cause.STORE_AND_START, order(f"J{number}")) for number in range(40))
        )
        for number in range(40):
            await plant.until_state(f"J{number}", JobState.ENDED)
    assert len({command.command_id for command in tool.commands}) == len(tool.commands) == 80


async def test_work_entry_added_outside_a_commit_is_processed(plant: Plant, tool: FakeEquipment) -> None:
    """As from another instance of whose commit another client's entry was taken."""
    tool.replies = obliging
    async with plant.at_work():
        await plant.order(Cause.STORE, order("J1"))
        await plant.ask(Cause.START, "J1")
        entry = ("job_id", "J1", "action", "start_recipe", "scope", SCOPE)
        await plant.store.execute("XADD", plant.store.keys.sfc_work(SCOPE), "*", *entry)
        await plant.until_state("J1", JobState.ENDED)
        await until_all_is_acknowledged(plant)
    assert tool.received() == ["a", "b"]


async def test_work_of_a_lost_reply_is_found_again(
    tmp_path: Path, redis: RedisSettings, plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    lost = 0

    async def lose_three(request: bytes) -> bool:
        nonlocal lost
        loses = lost < 3 and b"sfc:" in request and b"EVALSHA" in request
        lost += loses
        return not loses

    tool.replies = obliging
    async with relay_to(tmp_path, redis.url) as relay:
        relay.deliver = lose_three
        shaky = RedisSettings(url=relay.url, prefix=redis.prefix)
        async with instance(shaky, {TIGHTEN: tool}, clock) as far, far.at_work():
            with pytest.raises(Unavailable):
                await far.order(Cause.STORE_AND_START, order("J1"), event_id="e1")
            assert (await far.order(Cause.STORE_AND_START, order("J1"), event_id="e1")).status == 1
            await plant.until_state("J1", JobState.ENDED)
    assert lost == 3
    assert tool.received() == ["a", "b"]


async def test_script_flush_does_not_stop_running_jobs(plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        await plant.store.execute("SCRIPT", "FLUSH")
        tool.replies = obliging
        await plant.answer(tool.commands[0])
        await plant.until_state("J1", JobState.ENDED)


async def test_worker_continues_on_an_emptied_store(
    tmp_path_factory: pytest.TempPathFactory, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    async with (
        own_server(tmp_path_factory.mktemp("s")) as server,
        instance(RedisSettings(url=server.url), {TIGHTEN: tool}, clock) as plant,
        plant.at_work(),
    ):
        for job_id in ("J1", "J2"):
            await plant.teach("linear", linear(action("a", "one")))
            await plant.order(Cause.STORE_AND_START, order(job_id))
            await plant.until_state(job_id, JobState.ENDED)
            await plant.store.execute("FLUSHALL")
        await plant.teach("linear", linear(action("a", "one")))
        # Not by a commit that takes its own work, but by the loop that has to make its group again.
        await plant.order(Cause.STORE, order("J3"))
        await plant.store.commit(operation("HSET", plant.store.keys.joborder("J3"), "state", "ALLOWED_TO_START"))
        entry = ("job_id", "J3", "action", "start_recipe", "scope", SCOPE)
        await plant.store.execute("XADD", plant.store.keys.sfc_work(SCOPE), "*", *entry)
        await plant.until_state("J3", JobState.ENDED)


async def test_server_killed_while_jobs_run_loses_no_job(
    tmp_path_factory: pytest.TempPathFactory, tool: FakeEquipment, clock: Clock
) -> None:
    async with (
        own_server(tmp_path_factory.mktemp("s")) as server,
        instance(RedisSettings(url=server.url), {TIGHTEN: tool}, clock) as plant,
        plant.at_work(),
    ):
        await plant.teach("linear", linear(*(action(f"a{number}", f"s{number}") for number in range(6))))
        for number in range(10):
            await plant.order(Cause.STORE_AND_START, order(f"J{number}"))
        await until_true(lambda: len(tool.commands) == 10)
        await server.kill()
        with pytest.raises(Unavailable):
            await plant.answer(tool.commands[0])
        await server.start()
        tool.replies = obliging
        for command in tool.commands[:10]:
            await plant.answer(command)
        for number in range(10):
            await plant.until_state(f"J{number}", JobState.ENDED)
    assert len({command.command_id for command in tool.commands}) == 60


async def test_worker_waits_for_a_frozen_server(
    tmp_path_factory: pytest.TempPathFactory, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    async with (
        own_server(tmp_path_factory.mktemp("s")) as server,
        instance(RedisSettings(url=server.url), {TIGHTEN: tool}, clock) as plant,
        plant.at_work(),
    ):
        await plant.teach("linear", linear(action("a", "one")))
        server.freeze()
        asked = asyncio.create_task(plant.order(Cause.STORE_AND_START, order("J1")))
        await asyncio.wait([asked], timeout=0.2)
        assert not asked.done()
        server.thaw()
        assert (await asked).status == 1
        await plant.until_state("J1", JobState.ENDED)


async def test_unreadable_work_is_dead_lettered_and_blocks_no_job(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    stream = plant.store.keys.sfc_work(SCOPE)
    await work.create_groups(plant.store, [SCOPE])
    for entry in (("job_id", "J9"), ("job_id", "J9", "action", "dance", "scope", SCOPE), ("commands", "{")):
        await plant.store.execute("XADD", stream, "*", *entry)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await plant.until_state("J1", JobState.ENDED)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J2", JobState.ENDED)
        await until_all_is_acknowledged(plant)
    letters = (await dead_letters.load_all(plant.store)).values()
    assert [(letter.kind, letter.job_id) for letter in letters] == [
        (LetterKind.UNREADABLE, id_) for id_ in ("J9", "J9", "")
    ]
    assert dict(next(iter(letters)).details) == {"job_id": "J9"}


async def test_work_entry_deleted_by_another_program_blocks_no_job(plant: Plant, tool: FakeEquipment) -> None:
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await next_work(plant)
    await plant.store.execute("XTRIM", plant.store.keys.sfc_work(SCOPE), "MAXLEN", "0")
    tool.replies = obliging
    async with plant.at_work():
        # The next entry is for the job whose turn it is: the one whose own entry is gone.
        await plant.order(Cause.STORE_AND_START, order("J2"))
        await plant.until_state("J1", JobState.ENDED)
