"""A process knows which of its begun starts it has not sent."""

from edge.station.held_starts import HeldStarts, generation_of, mark_of_process, may_have_left


def test_held_starts_are_released_once_and_forgotten_when_they_are_many() -> None:
    """A process that runs for years would keep the id of each command otherwise."""
    held = HeldStarts(most=2)
    for command_id in "abc":
        held.hold(command_id)
    assert [text in held for text in "abc"] == [False, True, True]
    assert [held.release(text) for text in "abb"] == [False, True, False]


def test_mark_names_generation_and_process() -> None:
    assert generation_of(mark_of_process("g1")) == "g1"
    assert generation_of(mark_of_process("")) == ""
    assert mark_of_process("g1").removeprefix("g1") == mark_of_process("g2").removeprefix("g2")


def test_start_without_a_mark_has_not_left() -> None:
    assert not may_have_left("", "J1/R/work/1")
    assert may_have_left(mark_of_process(""), "never held")
