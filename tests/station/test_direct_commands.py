"""Commands without a job are sent to equipment that no job uses, and their answers are returned."""

import asyncio

import pytest
from msgspec.structs import replace

from edge.foundation.errors import Refused, Unavailable
from edge.model.job_state import Cause, JobState
from edge.sfc.signal import Phase
from edge.station.answers import Answers
from edge.station.direct_commands import DirectCommands, result_of
from edge.station.equipment import Begin, Command, EquipmentAnswer, NotSent, OutcomeUnknown
from edge.station.safing_sender import SafingSender
from edge.station.sender import Dispatch, Sender
from edge.store import dead_letters, equipment_memory
from edge.store.client import Store
from edge.store.commit import Commit, operation
from tests.station.plant import (
    DEDUPE_MS,
    SCOPE,
    TIGHTEN,
    Clock,
    FakeEquipment,
    Plant,
    none_active,
    obliging,
    order,
    send_due,
    until,
    until_true,
)
from tests.store.losing_store import LosingStore, Loss


def command(number: int = 0) -> Command:
    """Return a command of a flow."""
    return Command(f"flow_{number}_n/flow/flow/1", Phase.START, TIGHTEN, SCOPE, f"flow_{number}_n", "c", "flow", 1, {})


@pytest.fixture
def direct(plant: Plant, tool: FakeEquipment) -> DirectCommands:
    """The commands without a job, with the station that the tool answers."""
    direct_commands = DirectCommands(plant.runs)
    tool.station = Answers(plant.store, plant.runs, DEDUPE_MS, [TIGHTEN], direct_commands)
    return direct_commands


async def test_answer_to_a_direct_command_is_returned(direct: DirectCommands, tool: FakeEquipment) -> None:
    tool.replies = obliging
    answer = await direct.perform(tool, [TIGHTEN], command(), 30)
    assert isinstance(answer, EquipmentAnswer)
    assert result_of(answer) == {"ok": True}
    assert not direct.is_waiting(command().command_id)


async def test_answer_of_other_equipment_to_a_direct_command_is_ignored(
    direct: DirectCommands, plant: Plant, tool: FakeEquipment
) -> None:
    camera = Answers(plant.store, plant.runs, DEDUPE_MS, ["com.example.camera"], direct)
    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    await until_true(lambda: tool.commands)
    await camera.answer(EquipmentAnswer(command().command_id, {"ok": True}))
    assert not work.done()
    assert tool.station
    await tool.station.answer(EquipmentAnswer(command().command_id, {"ok": True}))
    assert isinstance(await work, EquipmentAnswer)


async def test_error_of_the_equipment_is_a_refusal(direct: DirectCommands, tool: FakeEquipment) -> None:
    tool.replies = lambda command_sent: EquipmentAnswer(command_sent.command_id, error="no part")
    answer = await direct.perform(tool, [TIGHTEN], command(), 30)
    assert isinstance(answer, EquipmentAnswer)
    with pytest.raises(Refused, match="no part"):
        result_of(answer)


async def test_direct_command_to_equipment_of_a_running_job_is_refused(
    direct: DirectCommands, running: Plant, tool: FakeEquipment
) -> None:
    assert (await running.job("J1")).status.state is JobState.RUNNING
    before = len(tool.commands)
    with pytest.raises(Refused, match="'J1' uses tool"):
        await direct.perform(tool, [TIGHTEN], command(), 30)
    assert len(tool.commands) == before


async def test_command_is_accepted_after_the_job(direct: DirectCommands, plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    async with plant.at_work():
        await until(lambda: none_active(plant))
    assert isinstance(await direct.perform(tool, [TIGHTEN], command(), 30), EquipmentAnswer)


async def test_direct_command_to_disconnected_equipment_is_refused(direct: DirectCommands, tool: FakeEquipment) -> None:
    tool.reachable = False
    with pytest.raises(Refused, match="not connected"):
        await direct.perform(tool, [TIGHTEN], command(), 30)
    assert tool.commands == []


async def test_direct_command_at_the_other_gateway_is_refused(direct: DirectCommands, tool: FakeEquipment) -> None:
    tool.holder = "gw-1"
    with pytest.raises(Refused, match="gateway gw-1 connects to tool"):
        await direct.perform(tool, [TIGHTEN], command(), 30)
    assert tool.commands == []


async def test_concurrent_direct_command_is_refused(direct: DirectCommands, tool: FakeEquipment) -> None:
    first = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    await until_true(lambda: tool.commands)
    with pytest.raises(Refused, match="uses tool"):
        await direct.perform(tool, [TIGHTEN], command(1), 30)
    first.cancel()
    await asyncio.wait([first])


async def test_command_without_an_answer_is_stopped(direct: DirectCommands, tool: FakeEquipment) -> None:
    answer = await direct.perform(tool, [TIGHTEN], command(), 0.05)
    assert isinstance(answer, OutcomeUnknown)
    assert "did not answer in 0.05 s" in str(answer.reason)
    assert [command_sent.phase for command_sent in tool.commands] == [Phase.START, Phase.STOP]


async def test_stop_of_a_command_is_kept_until_the_equipment_confirms_it(
    direct: DirectCommands, plant: Plant, tool: FakeEquipment
) -> None:
    await direct.perform(tool, [TIGHTEN], command(), 0.05)
    (safing_command,) = await equipment_memory.load_all_safing(plant.store)
    assert (safing_command.phase, safing_command.command_id, safing_command.type_id) == (
        Phase.STOP,
        command().command_id,
        TIGHTEN,
    )
    assert tool.station
    assert await tool.station.has_open_stop(command().command_id)
    await tool.station.stopped(command().command_id, None)
    assert await equipment_memory.load_all_safing(plant.store) == []


async def test_stop_is_kept_before_the_start_and_due_after_the_answer_time(
    direct: DirectCommands, plant: Plant, tool: FakeEquipment
) -> None:
    """A gateway that is killed meanwhile leaves the stop behind; it does not disturb the command before."""
    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    await until_true(lambda: tool.commands)
    (safing_command,) = await equipment_memory.load_all_safing(plant.store)
    assert safing_command.since >= plant.runs.clock() + 20_000
    sender = SafingSender(plant.runs, [SCOPE], {TIGHTEN: tool}, plant.runs.clock)
    await send_due(sender, tool)
    assert [command_sent.phase for command_sent in tool.commands] == [Phase.START]
    restarted = safing_command.since + 1
    late = SafingSender(plant.runs, [SCOPE], {TIGHTEN: tool}, lambda: restarted)
    await send_due(late, tool)
    assert [command_sent.phase for command_sent in tool.commands] == [Phase.START, Phase.STOP]
    assert tool.station
    await tool.station.answer(EquipmentAnswer(command().command_id, {"ok": True}))
    await work
    assert await equipment_memory.load_all_safing(plant.store) == []


async def test_possibly_sent_start_is_stopped(direct: DirectCommands, tool: FakeEquipment) -> None:
    send = tool.send

    async def lose(command: Command) -> None:
        await send(command)
        if command.phase is Phase.START:
            raise Unavailable("no confirmation")

    tool.send = lose  # type: ignore[method-assign]
    assert isinstance(await direct.perform(tool, [TIGHTEN], command(), 30), OutcomeUnknown)
    assert [command_sent.phase for command_sent in tool.commands] == [Phase.START, Phase.STOP]


async def test_start_that_did_not_leave_is_refused_and_leaves_no_stop(
    direct: DirectCommands, plant: Plant, tool: FakeEquipment
) -> None:
    def away(_: Command) -> None:
        raise NotSent("its broker is not connected")

    tool.replies = away
    with pytest.raises(Refused, match="its broker is not connected"):
        await direct.perform(tool, [TIGHTEN], command(), 30)
    assert await equipment_memory.load_all_safing(plant.store) == []
    assert not tool.received(Phase.STOP)


async def test_start_that_waits_in_memory_beyond_its_time_leaves_no_stop(
    direct: DirectCommands, plant: Plant, tool: FakeEquipment
) -> None:
    tool.withdraw = lambda _: True  # type: ignore[attr-defined]
    with pytest.raises(Refused, match="could not receive it"):
        await direct.perform(tool, [TIGHTEN], command(), 0.05)
    assert await equipment_memory.load_all_safing(plant.store) == []
    assert not tool.received(Phase.STOP)


async def test_job_waits_while_a_direct_command_uses_its_equipment(
    direct: DirectCommands, plant: Plant, tool: FakeEquipment
) -> None:
    plant.sender = Sender(plant.runs, Dispatch(plant.runs, plant.dispatch.routes, direct.is_busy))
    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    await until_true(lambda: tool.commands)
    await plant.order(Cause.STORE_AND_START, order("J1"))
    await plant.drive()
    assert [command_sent.command_id for command_sent in tool.commands] == [command().command_id]
    assert tool.station
    await tool.station.answer(EquipmentAnswer(command().command_id, {"ok": True}))
    await work
    async with plant.at_work():
        await until_true(lambda: len(tool.commands) > 1)


async def test_cancelled_command_is_stopped(direct: DirectCommands, tool: FakeEquipment) -> None:
    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    await until_true(lambda: tool.commands)
    work.cancel()
    await asyncio.wait([work])
    assert [command_sent.phase for command_sent in tool.commands] == [Phase.START, Phase.STOP]
    assert not direct.is_waiting(command().command_id)


async def test_command_is_offered_again_to_equipment_that_reconnects(
    direct: DirectCommands, tool: FakeEquipment
) -> None:
    """The equipment may have lost its start; one that must not be repeated has its begun mark."""
    assert tool.station
    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    await until_true(lambda: tool.commands)
    again = replace(command(), offered_again=True)
    assert await tool.station.outstanding([SCOPE], [TIGHTEN]) == [again]
    assert await tool.station.outstanding(["other"], [TIGHTEN]) == []
    assert await tool.station.outstanding([SCOPE], ["other"]) == []
    assert await tool.station.begin(command().command_id) is Begin.NEW
    assert await tool.station.outstanding([SCOPE], [TIGHTEN]) == [replace(again, begun=True)]
    assert await tool.station.begin(command().command_id) is Begin.AGAIN
    await tool.station.answer(EquipmentAnswer(command().command_id, {"ok": True}))
    await work
    assert await tool.station.outstanding([SCOPE], [TIGHTEN]) == []


async def test_command_is_not_offered_before_the_jobs_are_checked(direct: DirectCommands, tool: FakeEquipment) -> None:
    """A tool that connects meanwhile must not start next to a job that uses it."""
    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    # One turn of the loop: the command is registered, and the store has not returned the jobs yet.
    await asyncio.sleep(0)
    assert direct.is_waiting(command().command_id)
    assert direct.outstanding([SCOPE], [TIGHTEN]) == []
    await until_true(lambda: tool.commands)
    work.cancel()
    await asyncio.wait([work])


async def test_answer_is_stored_before_it_is_acknowledged(
    direct: DirectCommands, plant: Plant, tool: FakeEquipment
) -> None:
    def keep(answer: EquipmentAnswer) -> Commit:
        return operation("SET", f"{plant.store.keys.prefix}:kept", str(answer.data))

    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30, keep))
    await until_true(lambda: tool.commands)
    assert tool.station
    await tool.station.answer(EquipmentAnswer(command().command_id, 85))
    assert await plant.store.execute("GET", f"{plant.store.keys.prefix}:kept") == "85"
    assert await equipment_memory.load_all_safing(plant.store) == []
    await work


async def test_answer_without_a_store_is_not_acknowledged(store: Store, tool: FakeEquipment, clock: Clock) -> None:
    losing = LosingStore(store, [])
    plant = Plant(losing, {TIGHTEN: tool}, clock)
    direct = DirectCommands(plant.runs)
    tool.station = Answers(losing, plant.runs, DEDUPE_MS, [TIGHTEN], direct)
    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    await until_true(lambda: tool.commands)
    losing.losses = iter([Loss.REQUEST])
    with pytest.raises(Unavailable):
        await tool.station.answer(EquipmentAnswer(command().command_id, 85))
    assert not work.done()
    await tool.station.answer(EquipmentAnswer(command().command_id, 85))
    assert result_of_work(await work) == 85


def result_of_work(answer: EquipmentAnswer | OutcomeUnknown) -> object:
    """Return the data of an answer that must be one."""
    assert isinstance(answer, EquipmentAnswer)
    return result_of(answer)


async def test_answer_after_the_time_limit_is_kept_as_late(
    direct: DirectCommands, plant: Plant, tool: FakeEquipment
) -> None:
    await direct.perform(tool, [TIGHTEN], command(), 0.05)
    assert tool.station
    await tool.station.answer(EquipmentAnswer(command().command_id, {"torque": 85}))
    (letter,) = (await dead_letters.load_all(plant.store)).values()
    assert letter.details["command_id"] == command().command_id
    assert await equipment_memory.load_all_safing(plant.store) == []


async def test_waiting_direct_command_is_outstanding_and_may_begin(direct: DirectCommands, tool: FakeEquipment) -> None:
    assert tool.station
    name = command().command_id
    assert await tool.station.begin(name) is Begin.GONE
    work = asyncio.create_task(direct.perform(tool, [TIGHTEN], command(), 30))
    await until_true(lambda: tool.commands)
    assert await tool.station.begin(name) is Begin.NEW
    assert await tool.station.is_outstanding(name)
    await tool.station.answer(OutcomeUnknown(name, "lost"))
    assert await work == OutcomeUnknown(name, "lost")
    assert not await tool.station.is_outstanding(name)
