"""A request goes to the one piece of equipment that takes its type."""

import asyncio

import pytest

from edge.model.job_state import Cause, JobState
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.sfc.signal import Phase
from edge.station.equipment import NotSent
from edge.station.sender import routes_of
from edge.store.client import HighAvailability
from edge.store.connection import CommandConnection, Endpoint
from edge.store.fence import Fence
from edge.store.generation import GenerationCheck
from edge.store.replication import Replication
from edge.store.runs import Outgoing
from edge.store.sentinels import Primary, SentinelAddress, Sentinels
from tests.station.plant import PHOTO, TIGHTEN, FakeEquipment, Plant, action, linear, order, pull, until_true


def test_command_type_is_routed_to_its_equipment() -> None:
    tool, camera = FakeEquipment("tool"), FakeEquipment("camera")
    assert routes_of([(tool, ["a", "b"]), (camera, ["c"])]) == {"a": tool, "b": tool, "c": camera}


def test_command_types_without_equipment_are_listed_without_waits(plant: Plant) -> None:
    net = compile_recipe(
        linear(action("a", "one"), action("b", "two", "z"), action("c", "three", "y"), pull("d", "four"))
    )
    assert isinstance(net, Net)
    assert plant.dispatch.unrouted(net) == ["y", "z"]


async def test_command_to_removed_equipment_fails_its_job(plant: Plant, equipment: dict[str, FakeEquipment]) -> None:
    await plant.teach("two", linear(action("a", "one"), action("b", "two", PHOTO)))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "two"))
        await until_true(lambda: bool(equipment[TIGHTEN].commands))
    poorer = Plant(plant.store, {TIGHTEN: equipment[TIGHTEN]}, plant.runs.clock)
    async with poorer.at_work():
        await poorer.answer(equipment[TIGHTEN].commands[0])
        job = await poorer.until_state("J1", JobState.ABORTED)
    assert str(job.error) == f"action 'b' of step 'two' failed: no equipment takes commands of type {PHOTO}"


async def test_stop_has_the_id_and_type_of_its_command(plant: Plant, tool: FakeEquipment) -> None:
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: bool(tool.commands))
        await plant.ask(Cause.ABORT, "J1")
        await until_true(lambda: bool(tool.received(Phase.STOP)))
    start, stop = tool.commands
    assert (stop.command_id, stop.type_id, stop.attempt) == (start.command_id, start.type_id, start.attempt)
    assert stop.correlation_id == start.correlation_id


async def test_reset_has_the_type_of_the_resetting_association(plant: Plant, tool: FakeEquipment) -> None:
    clamp = linear(
        action("clamp", "one", qualifier="S"), action("clamp", "two", PHOTO, qualifier="R"), action("a", "three")
    )
    await plant.teach("clamp", clamp)
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "clamp"))
        for number in range(3):
            await until_true(lambda: len(tool.commands) > number)  # noqa: B023
            await plant.answer(tool.commands[number])
        await plant.until_state("J1", JobState.ENDED)
    assert [(command.phase, command.type_id) for command in tool.commands] == [
        (Phase.START, TIGHTEN),
        (Phase.RESET, PHOTO),
        (Phase.START, TIGHTEN),
    ]


async def test_start_waits_while_the_primary_is_not_confirmed(plant: Plant, tool: FakeEquipment) -> None:
    """Another gateway may work on another primary already; a stop leaves nevertheless."""
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: bool(tool.commands))
    (start,) = tool.commands
    loaded = await plant.runs.load("J1")
    assert loaded
    primary = Primary("127.0.0.1", 6379, 1)
    fence = Fence(primary, asyncio.get_running_loop().time)
    sentinels = Sentinels(SentinelAddress("line", (), Endpoint()))
    replication = Replication(CommandConnection(Endpoint()), "mark", (), least=0)
    plant.store.ha = HighAvailability(sentinels, fence, GenerationCheck(plant.store.keys, primary), replication)
    outgoing = Outgoing(Phase.START, start.command_id, "one", start.type_id)
    with pytest.raises(NotSent, match="primary of the store is not confirmed"):
        await plant.dispatch.perform(loaded, outgoing)
    assert tool.commands == [start]
    await plant.dispatch.stop(start.scope, start.command_id, start.type_id)
    assert tool.received(Phase.STOP)
