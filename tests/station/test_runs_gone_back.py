"""The store may lose acknowledged data: failover, power cut of a remote Redis, restored backup."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from structlog.testing import capture_logs

from edge.config import RedisSettings
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Answer, Phase
from edge.station.decision import Decision
from edge.store import runs
from edge.store.client import Store
from edge.store.connection import Argument
from edge.store.open_store import open_store
from tests.station.plant import (
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    all_keys,
    obliging,
    order,
    until,
    until_all_is_acknowledged,
    until_true,
)

pytestmark = pytest.mark.damaged_runs


async def copied(store: Store) -> Mapping[str, str]:
    """Copy every key of a store that is about jobs and their runs, and name the copies."""
    keys = [key for key in await all_keys(store) if await store.execute("TYPE", key) != "stream"]
    copies = {key: f"before {key}" for key in keys}
    for key, copy in copies.items():
        await store.execute("COPY", key, copy)
    return copies


async def go_back(store: Store, copies: Mapping[str, str]) -> None:
    """Restore the keys of a store to their copy."""
    for key in await all_keys(store):
        if key not in copies and await store.execute("TYPE", key) != "stream":
            await store.execute("DEL", key)
    for key, copy in copies.items():
        await store.execute("RENAME", copy, key)


@pytest.fixture
async def working(plant: Plant, tool: FakeEquipment) -> AsyncIterator[Plant]:
    """A station whose job J1 has sent the command `a`, of which the store knows that it was sent."""
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.received() == ["a"])
        await until_all_is_acknowledged(plant)
        yield plant


async def test_command_of_a_lost_answer_is_sent_again_with_the_same_id(working: Plant, tool: FakeEquipment) -> None:
    """The cache of the later state made the gateway read the run again without a pause, for ever."""
    before = await copied(working.store)
    await working.answer(tool.commands[0])
    await until_true(lambda: tool.received() == ["a", "b"])
    await go_back(working.store, before)
    first, second = (command.command_id for command in tool.commands)
    with capture_logs() as logs:
        async with asyncio.timeout(60):
            await working.answer(tool.commands[1])
        await until_true(lambda: tool.received() == ["a", "b", "a"])
        tool.replies = obliging
        await working.answer(tool.commands[2])
        await working.until_state("J1", JobState.ENDED)
    assert [command.command_id for command in tool.commands] == [first, second, first, second]
    (reported,) = (entry for entry in logs if entry["event"] == "run resumed from an older state")
    assert (reported["log_level"], reported["job"]) == ("warning", "J1")
    assert reported["lost"] == reported["stored"] + 1


async def test_lost_commit_of_one_job_keeps_the_deadlines_of_others(working: Plant, tool: FakeEquipment) -> None:
    before = await copied(working.store)
    await working.answer(tool.commands[0])
    await until_true(lambda: tool.received() == ["a", "b"])
    await go_back(working.store, before)
    await working.store.commit(runs.set_timer(working.store.keys, "J1", 0))
    await working.order(Cause.STORE, order("J2"))
    await working.store.commit(runs.set_timer(working.store.keys, "J2", 1))

    async def no_timer_is_overdue() -> bool:
        return not await runs.due(working.store, working.runs.clock(), 10)

    async with background_task(working.timers.run(), "timers"):
        await until(no_timer_is_overdue)


async def test_job_whose_end_was_lost_by_the_store_ends_again(working: Plant, tool: FakeEquipment) -> None:
    await working.answer(tool.commands[0])
    await until_true(lambda: tool.received() == ["a", "b"])
    await until_all_is_acknowledged(working)
    before = await copied(working.store)
    await working.answer(tool.commands[1])
    await working.until_state("J1", JobState.ENDED)
    await go_back(working.store, before)
    tool.replies = obliging
    await working.runs.load("J1")
    await working.until_state("J1", JobState.ENDED)
    assert tool.received() == ["a", "b", "b"]


async def test_unsent_stop_lost_by_the_store_is_sent(working: Plant, tool: FakeEquipment) -> None:
    before = await copied(working.store)
    tool.reachable = False
    await working.ask(Cause.ABORT, "J1")
    await until_true(lambda: tool.refused)
    await go_back(working.store, before)
    await working.runs.load("J1")
    tool.reachable = True
    await until_true(lambda: tool.received(Phase.STOP) == ["a"])
    assert (await working.job("J1")).status.state is JobState.RUNNING


class SlowStore(Store):
    """A store on the connections of another one whose second answer about a run arrives late."""

    def __init__(self, store: Store) -> None:
        vars(self).update(vars(store))
        self._answers = 0
        self.answered, self.overtaken = asyncio.Event(), asyncio.Event()

    async def execute(self, command: str, *arguments: Argument) -> Any:
        """Run the command; its second answer about a run waits for `overtaken`."""
        found = await super().execute(command, *arguments)
        if command == "HGETALL" and "sfc:execution" in str(arguments):
            self._answers += 1
            if self._answers == 2:
                self.answered.set()
                await self.overtaken.wait()
        return found


@pytest.mark.usefixtures("working")
async def test_read_overtaken_by_a_commit_is_not_taken_as_data_loss(
    redis: RedisSettings, tool: FakeEquipment, clock: Clock
) -> None:
    async with open_store(redis, "far") as store:
        slow = SlowStore(store)
        other = Plant(slow, {TIGHTEN: tool}, clock)
        await other.runs.load("J1")
        with capture_logs() as logs:
            read = asyncio.create_task(other.runs.load("J1"))
            await slow.answered.wait()
            decided = await other.runs.signal("J1", Answer(tool.commands[0].command_id, ok=True))
            slow.overtaken.set()
            loaded = await read
    assert isinstance(decided, Decision)
    assert loaded
    assert loaded.stored.revision == decided.loaded.stored.revision
    assert [outgoing.step for outgoing in other.runs.outbox.unsent("J1")] == ["two"]
    assert logs == []
