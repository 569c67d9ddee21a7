"""A command that never left the gateway has no open stop and no time of sending; one that may have left keeps both."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock as Now
from edge.model.job_state import Cause, JobState
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.run import Association
from edge.sfc.signal import Begun, Phase
from edge.station.equipment import Command, NotSent, Repetition
from edge.store import equipment_memory, instance_leases, runs
from edge.store.client import Store
from edge.store.runs import Outgoing
from tests.station.plant import LINEAR, PHOTO, SCOPE, TIGHTEN, FakeEquipment, Plant, order, until, until_true

REASON = "wrench is not connected: refused"


class Away(FakeEquipment):
    """Equipment that is away: a command raises `failure`, or waits in the memory of the port where that is None."""

    def __init__(self, failure: Exception | None, repetition: Repetition = Repetition.RECOGNISABLE) -> None:
        super().__init__("wrench")
        self.reachable = False
        self.failure = failure
        self.repetition = repetition
        self.tried: list[Command] = []
        self.stops: list[str] = []

    def repetition_of(self, type_id: str) -> Repetition:
        return self.repetition

    async def send(self, command: Command) -> None:
        self.tried.append(command)
        if self.failure is not None:
            raise self.failure

    async def stop(self, command: Command) -> None:
        self.stops.append(command.command_id)
        raise NotSent(REASON)


class Queueing(Away):
    """Equipment whose port has each start in its memory only."""

    def withdraw(self, command_id: str) -> bool:
        return bool(command_id)


@asynccontextmanager
async def aborted(store: Store, clock: Now, tool: Away) -> AsyncIterator[Plant]:
    """Work with a job that is aborted after its command was tried."""
    equipment: Mapping[str, FakeEquipment] = {TIGHTEN: tool, PHOTO: tool}
    plant = Plant(store, dict(equipment), clock)
    await plant.teach("linear", LINEAR)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.tried)
        await plant.ask(Cause.ABORT, "J1")
        await plant.until_state("J1", JobState.ABORTED)
        yield plant


async def command(plant: Plant) -> Association:
    stored_run = await runs.load(plant.store, "J1")
    assert stored_run is not None
    return stored_run.run.associations[key("a@one")]


async def is_withdrawn(plant: Plant) -> bool:
    return (await command(plant)).withdrawn and not await equipment_memory.load_all_safing(plant.store)


async def test_stop_of_a_command_that_never_left_is_not_open(store: Store, clock: Now) -> None:
    tool = Away(NotSent(REASON))
    async with aborted(store, clock, tool) as plant:
        await until(lambda: is_withdrawn(plant))
        association = await command(plant)
        assert (association.sent_at, str(association.error)) == (None, f"never sent: {REASON}")
        assert tool.stops == []


async def test_stop_of_a_command_that_may_have_left_stays_open(store: Store, clock: Now) -> None:
    tool = Away(Unavailable("the broker did not confirm it"))
    async with aborted(store, clock, tool) as plant:
        await until_true(lambda: tool.stops)
        assert len(await equipment_memory.load_all_safing(plant.store)) == 1
        association = await command(plant)
        assert association.sent_at is not None
        assert not association.withdrawn


async def test_command_in_the_memory_of_the_port_never_left(store: Store, clock: Now) -> None:
    tool = Queueing(None)
    async with aborted(store, clock, tool) as plant:
        await until(lambda: is_withdrawn(plant))
        assert tool.stops == []


async def test_command_sent_once_without_begun_mark_never_left(store: Store, clock: Now) -> None:
    tool = Away(None, Repetition.ONCE)
    async with aborted(store, clock, tool) as plant:
        await until(lambda: is_withdrawn(plant))
        assert tool.stops == []


async def test_command_with_a_begun_mark_may_have_left(store: Store, clock: Now) -> None:
    class Begins(Away):
        async def send(self, command: Command) -> None:
            await plant.runs.signal("J1", Begun(command.command_id, "this process"))
            self.tried.append(command)

    tool = Begins(None, Repetition.ONCE)
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await plant.teach("linear", LINEAR)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.tried)
        await plant.ask(Cause.ABORT, "J1")
        await until_true(lambda: tool.stops)
        assert not await is_withdrawn(plant)


@pytest.mark.parametrize(("kind", "failure"), [(Away, NotSent(REASON)), (Queueing, None)])
async def test_command_that_another_gateway_has_begun_is_stopped(
    store: Store, clock: Now, kind: type[Away], failure: Exception | None
) -> None:
    """The other one has found it in the store when it connected."""
    tool = kind(failure, Repetition.ONCE)
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await plant.teach("linear", LINEAR)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.tried)
        await plant.runs.signal("J1", Begun(tool.tried[0].command_id, "another process"))
        await plant.ask(Cause.ABORT, "J1")
        await until_true(lambda: tool.stops)
        assert len(await equipment_memory.load_all_safing(plant.store)) == 1
        assert not await is_withdrawn(plant)


async def test_start_without_mark_may_have_been_sent_by_another_gateway(store: Store, clock: Now) -> None:
    """The other one offers it on its own connection: without a stop the tool would stay on."""
    tool = Away(NotSent(REASON))
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await plant.teach("linear", LINEAR)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.tried)
        started = Outgoing(Phase.START, tool.tried[0].command_id, "one", TIGHTEN)
        for name, may_have_been_sent in (("one", False), ("two", True)):
            await instance_leases.register(store, (SCOPE,), name)
            assert await plant.dispatch.has_begun(started, "J1") is may_have_been_sent


async def test_command_that_is_gone_from_its_run_may_have_begun(store: Store, clock: Now) -> None:
    """A retry replaces the attempt, and with it the begun mark of another gateway: it is stopped."""
    tool = Away(NotSent(REASON), Repetition.ONCE)
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await plant.teach("linear", LINEAR)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.tried)
        started = Outgoing(Phase.START, tool.tried[0].command_id, "one", TIGHTEN)
        assert not await plant.dispatch.has_begun(started, "J1")
        assert await plant.dispatch.has_begun(replace(started, command_id="J1/run/a/9"), "J1")


async def test_command_that_waits_to_be_sent_is_not_sent_yet(store: Store, clock: Now) -> None:
    tool = Away(NotSent(REASON))
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, clock)
    await plant.teach("linear", LINEAR)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: tool.tried)
        stored_run = await runs.load(store, "J1")
        assert stored_run is not None
        assert stored_run.unsent == {tool.tried[0].command_id}
        tool.failure = None

        async def is_sent() -> bool:
            again = await runs.load(store, "J1")
            return again is not None and not again.unsent

        await until(is_sent)


async def test_command_that_nothing_subscribed_to_names_that_reason(store: Store, clock: Now) -> None:
    """Its error was that its time passed before a gateway could send it: the broker had it each time."""
    tool = Queueing(None)
    tool.reachable, tool.problem = True, "nothing subscribes to edge/wrench/commands"
    async with aborted(store, clock, tool) as plant:
        await until(lambda: is_withdrawn(plant))
        assert str((await command(plant)).error) == "never sent: nothing subscribes to edge/wrench/commands"
