"""A begun mark names the generation in which its start was sent."""

import pytest

from edge.station.begun_mark import ReleasedStarts, begun_again, mark_of_process
from edge.station.equipment import Begin


@pytest.mark.parametrize(
    ("found", "own", "expected"),
    [
        ("", "", Begin.AGAIN),
        ("g1", "g1", Begin.AGAIN),
        ("g1", "g2", Begin.LOST),
        ("", "g1", Begin.LOST),
        ("g1", "", Begin.LOST),
    ],
    ids=["without Sentinel", "same", "after a failover", "first with Sentinel", "no longer with Sentinel"],
)
def test_mark_of_another_generation_is_lost(found: str, own: str, expected: Begin) -> None:
    assert begun_again(mark_of_process(found), mark_of_process(own)) is expected


def test_mark_of_an_earlier_release_counts_as_one_without_sentinel() -> None:
    former = "0b1c7a3e-6a0f-4b53-9a0e-0d6f1f1d3c5e"
    assert begun_again(former, mark_of_process("")) is Begin.AGAIN
    assert begun_again(former, mark_of_process("g1")) is Begin.LOST


def test_marks_of_two_processes_differ() -> None:
    assert mark_of_process("g1") != mark_of_process("g1")


def test_released_starts_are_forgotten_when_they_end_or_are_many() -> None:
    """A process that runs for years would keep the id of each command otherwise."""
    released = ReleasedStarts(most=2)
    for command_id in "abc":
        released.add(command_id)
    released.discard("b")
    assert [text in released for text in "abc"] == [False, False, True]
