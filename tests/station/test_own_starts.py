"""A process knows which of its begun starts it has not sent."""

from edge.station.own_starts import OwnStarts, generation_of


def test_own_starts_are_released_once_and_forgotten_when_they_are_many() -> None:
    """A process that runs for years would keep the id of each command otherwise."""
    held = OwnStarts(most=2)
    for command_id in "abc":
        held.hold(command_id)
    assert [text in held for text in "abc"] == [False, True, True]
    assert [held.release(text, "g1") for text in "abb"] == [False, True, False]


def test_start_that_has_left_is_not_held_again_unless_it_was_withheld() -> None:
    held = OwnStarts(most=2)
    for command_id in "abc":
        held.hold(command_id)
        assert held.release(command_id, "g1")
    assert [held.has_left_before(text, "g2") for text in "abc"] == [False, True, True]
    assert not held.has_left_before("c", "g1")
    held.hold("c")
    assert not held.release("c", "g2")
    held.withhold("c")
    assert (held.has_left_before("c", "g2"), held.release("c", "g2")) == (False, True)
    assert held.has_left_before("c", "g1")


def test_mark_names_generation_and_process() -> None:
    held = OwnStarts()
    assert generation_of(held.mark("g1")) == "g1"
    assert generation_of(held.mark("")) == ""
    assert held.mark("g1").removeprefix("g1") == held.mark("g2").removeprefix("g2")


def test_start_without_a_mark_has_not_left() -> None:
    held = OwnStarts()
    assert not held.may_have_left("", "J1/R/work/1")
    assert held.may_have_left(held.mark(""), "never held")


def test_start_that_another_process_marked_may_have_left() -> None:
    ours, other = OwnStarts(), OwnStarts()
    ours.hold("J1/R/work/1")
    assert not ours.may_have_left(ours.mark("g1"), "J1/R/work/1")
    assert ours.may_have_left(other.mark("g1"), "J1/R/work/1")
