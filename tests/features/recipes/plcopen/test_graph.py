"""Steps, divergences and jumps of an export are those that an engineer would draw."""

from tests.features.recipes.plcopen.exported import exported
from tests.sfc.recipes import branch, recipe, transition


def kinds(data: bytes) -> list[str]:
    body = data.decode().partition("<SFC>")[2].partition("</SFC>")[0]
    return [line[1:].split(" ")[0] for line in body.strip().splitlines()]


def test_a_way_back_is_a_jump_and_a_choice_a_divergence() -> None:
    data = recipe("A B C", [transition("A", "B", "x"), transition("B", "A", "again"), transition("B", "C", "done", 1)])
    text = exported(data)
    assert sorted(kinds(text)) == ["jumpStep", "selectionDivergence", *["step"] * 3, *["transition"] * 3]
    assert b'targetName="A"' in text


def test_nested_parallel_paths_are_nested_divergences() -> None:
    ways = [transition("A", "outer", "x"), transition("outer", "E", "y")]
    data = recipe(
        "A B C D E", ways, [], branch("outer", "simultaneous", "inner", "D"), branch("inner", "simultaneous", "B", "C")
    )
    assert kinds(exported(data)).count("simultaneousDivergence") == 2
    assert kinds(exported(data)).count("simultaneousConvergence") == 2


def test_ways_that_meet_converge_before_their_step() -> None:
    data = recipe(
        "A B C D", [transition("A", "B", "x"), transition("A", "C", "y"), transition("B", "D"), transition("C", "D")]
    )
    assert kinds(exported(data)).count("selectionConvergence") == 1
