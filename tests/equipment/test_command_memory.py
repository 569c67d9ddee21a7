"""The memory of commands: what never left, what ended, and how often a command met a defect."""

from msgspec.structs import replace

from edge.equipment.command_memory import CommandMemory
from tests.equipment.contract import NEXT, WORK


def test_queued_command_is_unsent_until_it_begins_or_ends() -> None:
    memory = CommandMemory()
    memory.note_queued(WORK)
    memory.note_queued(NEXT)
    assert memory.is_unsent(WORK.command_id)
    memory.note_begun(WORK.command_id)
    memory.note_ended(NEXT.command_id)
    assert not memory.is_unsent(WORK.command_id)
    assert not memory.is_unsent(NEXT.command_id)


def test_command_that_was_offered_before_may_have_left() -> None:
    memory = CommandMemory()
    memory.note_queued(replace(WORK, offered_again=True))
    assert not memory.is_unsent(WORK.command_id)


def test_oldest_ended_command_is_forgotten_first() -> None:
    memory = CommandMemory(limit=2)
    for number in range(3):
        memory.note_ended(str(number))
    assert [memory.has_ended(str(number)) for number in range(3)] == [False, True, True]


def test_commands_that_are_never_sent_do_not_fill_the_memory() -> None:
    memory = CommandMemory(limit=2)
    commands = [replace(WORK, command_id=str(number)) for number in range(3)]
    for command in commands:
        memory.note_queued(command)
        memory.count_defect(command.command_id)
    assert [memory.is_unsent(order.command_id) for order in commands] == [False, True, True]
    assert [memory.count_defect(str(number)) for number in (2, 0)] == [2, 1]


def test_defects_of_a_command_are_counted_until_it_ends() -> None:
    memory = CommandMemory()
    assert [memory.count_defect("a") for _ in range(2)] == [1, 2]
    memory.note_ended("a")
    assert memory.count_defect("a") == 1
