"""Equipment that reconnects receives the commands that it has not answered."""

import msgspec

from edge.station.equipment import Begin
from tests.station.plant import SCOPE, TIGHTEN, Clock, FakeEquipment, Plant
from tests.station.test_answers import started


async def test_outstanding_commands_are_sent_and_unanswered(plant: Plant, tool: FakeEquipment) -> None:
    await started(plant, "J1", "J2")
    assert await plant.answers.outstanding((SCOPE,), (TIGHTEN,)) == [
        msgspec.structs.replace(command, offered_again=True) for command in tool.commands
    ]
    await plant.answer(tool.commands[0])
    await plant.drive()
    answered, *open_ones = tool.commands
    found = await plant.answers.outstanding((SCOPE,), (TIGHTEN,))
    assert sorted(command.command_id for command in found) == sorted(one.command_id for one in open_ones)
    assert answered not in found
    each_by_itself = [await plant.answers.is_outstanding(command.command_id) for command in tool.commands]
    assert each_by_itself == [command is not answered for command in tool.commands]
    assert not await plant.answers.is_outstanding("nobody's")


async def test_commands_of_other_scopes_or_types_are_not_outstanding(plant: Plant) -> None:
    await started(plant, "J1")
    assert await plant.answers.outstanding(("station-9",), (TIGHTEN,)) == []
    assert await plant.answers.outstanding((SCOPE,), ("photo",)) == []


async def test_command_whose_time_is_over_is_not_outstanding(running: Plant, tool: FakeEquipment, clock: Clock) -> None:
    """Equipment that lost it must not start now: the timers of its run stop it."""
    assert len(await running.answers.outstanding((SCOPE,), (TIGHTEN,))) == 1
    clock.now += 5_000
    assert await running.answers.outstanding((SCOPE,), (TIGHTEN,)) == []
    assert tool.received() == ["a"]


async def test_begun_command_is_the_first_outstanding_one(plant: Plant, tool: FakeEquipment) -> None:
    """The job with the earlier name took the tool of the begun one after a reconnect: its outcome was unknown."""
    await started(plant, "Jc", "Jb", "Ja")
    assert (await plant.answers.begin(tool.commands[1].command_id)) is Begin.NEW
    found = await plant.answers.outstanding((SCOPE,), (TIGHTEN,))
    assert [(command.job_id, command.begun) for command in found] == [("Jb", True), ("Jc", False), ("Ja", False)]
