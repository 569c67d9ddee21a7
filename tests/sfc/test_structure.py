"""Branches unfold into plain arcs."""

import pytest

from edge.model.recipe import parse_recipe
from edge.sfc.structure import MAX_WAYS, Structure, TooManyWaysError
from tests.sfc.driving import Driven
from tests.sfc.recipes import Json, branch, net_of, recipe, transition


def structure(data: Json) -> Structure:
    parsed, faults = parse_recipe(data)
    assert parsed is not None, faults
    return Structure(parsed)


def arcs(data: Json) -> list[tuple[str, str, str]]:
    return [
        (" ".join(arc.sources), " ".join(arc.targets), " and ".join(arc.conditions)) for arc in structure(data).arcs
    ]


def test_a_simultaneous_branch_is_entered_and_left_by_one_arc() -> None:
    data = recipe(
        "I A B C End",
        [transition("I", "par", "go"), transition("par", "End", "released")],
        [],
        branch("par", "simultaneous", "A B", "C"),
    )
    assert arcs(data) == [("I", "A C", "go"), ("B C", "End", "released"), ("A", "B", "")]


def test_entries_of_a_simultaneous_branch_guard_its_one_arc() -> None:
    data = recipe(
        "I A B",
        [transition("I", "par", "go"), transition("par", "A", "a"), transition("par", "B", "b")],
        [],
        branch("par", "simultaneous", "A", "B"),
    )
    assert arcs(data) == [("I", "A B", "go and a and b")]


def test_selection_has_an_arc_per_path_by_priority_then_list_order() -> None:
    data = recipe(
        "I X Y Z End",
        [
            transition("I", "sel", "go"),
            transition("sel", "X", "x", 2),
            transition("sel", "Y", "y", 1),
            transition("sel", "End"),
        ],
        [],
        branch("sel", "selection", "X", "Y", "Z"),
    )
    assert arcs(data) == [
        ("I", "Z", "go"),
        ("I", "Y", "go and y"),
        ("I", "X", "go and x"),
        ("X", "End", "always"),
        ("Y", "End", "always"),
        ("Z", "End", "always"),
    ]


def test_priority_into_a_selection_outranks_that_of_its_paths() -> None:
    data = recipe(
        "I X Y Other",
        [transition("I", "sel", "go", 5), transition("I", "Other", "other", 3), transition("sel", "X", "x", -9)],
        [],
        branch("sel", "selection", "X", "Y"),
    )
    assert [target for _, target, _ in arcs(data)] == ["Other", "X", "Y"]


def test_nesting_multiplies_entries_and_exits() -> None:
    data = recipe(
        "I A B C D End",
        [
            transition("I", "par"),
            transition("one", "A", "a"),
            transition("one", "B", "b"),
            transition("two", "C", "c"),
            transition("two", "D", "d"),
            transition("par", "End", "e"),
        ],
        [],
        branch("par", "simultaneous", "one", "two"),
        branch("one", "selection", "A", "B"),
        branch("two", "selection", "C", "D"),
    )
    assert arcs(data) == [
        ("I", "A C", "always and a and c"),
        ("I", "A D", "always and a and d"),
        ("I", "B C", "always and b and c"),
        ("I", "B D", "always and b and d"),
        ("A C", "End", "e"),
        ("A D", "End", "e"),
        ("B C", "End", "e"),
        ("B D", "End", "e"),
    ]


def test_explicit_transition_replaces_the_implied_one() -> None:
    data = recipe(
        "I A X Y B",
        [transition("I", "par"), transition("A", "X", "x"), transition("A", "Y", "y"), transition("X", "B", "b")],
        [],
        branch("par", "simultaneous", "A sel B"),
        branch("sel", "selection", "X", "Y"),
    )
    assert arcs(data) == [
        ("I", "A", "always"),
        ("A", "X", "x"),
        ("A", "Y", "y"),
        ("X", "B", "b"),
        ("Y", "B", ""),
    ]


def test_branch_can_be_entered_again_from_its_end() -> None:
    data = recipe(
        "I A B", [transition("I", "sel"), transition("sel", "sel", "again")], [], branch("sel", "selection", "A B")
    )
    assert ("B", "A", "again") in arcs(data)


def test_chains_name_the_simultaneous_paths_around_a_block_outermost_first() -> None:
    found = structure(
        recipe(
            "I A B C",
            [],
            [],
            branch("out", "simultaneous", "sel", "C"),
            branch("sel", "selection", "in"),
            branch("in", "simultaneous", "A", "B"),
        )
    )
    assert found.chain("B") == (("out", 0), ("in", 1))
    assert found.chain("in") == (("out", 0),)
    assert found.chain("I") == ()
    assert found.steps_of(["out"]) == {"A", "B", "C"}


def test_too_many_arcs_between_two_selections_are_reported() -> None:
    left, right = (" ".join(f"{side}{n}" for n in range(200)) for side in "LR")
    data = recipe(
        f"I {left} {right}",
        [transition("I", "left"), transition("left", "right")],
        [],
        branch("left", "selection", *left.split()),
        branch("right", "selection", *right.split()),
    )
    with pytest.raises(TooManyWaysError, match="left → right"):
        assert structure(data).arcs


def test_too_many_paths_are_reported_not_computed() -> None:
    paths = [f"s{n}" for n in range(12)]
    steps = "I " + " ".join(f"{path}a {path}b" for path in paths)
    data = recipe(
        steps,
        [transition("I", "par")],
        [],
        branch("par", "simultaneous", *paths),
        *(branch(path, "selection", f"{path}a", f"{path}b") for path in paths),
    )
    assert 2 ** len(paths) > MAX_WAYS
    with pytest.raises(TooManyWaysError):
        assert structure(data).arcs


def test_first_path_is_taken_without_path_transitions() -> None:
    data = recipe("A X Y", [transition("A", "s")], [], branch("s", "selection", "X", "Y"))
    assert Driven(net_of(data)).run.active == {"X"}


def test_implied_transition_precedes_one_of_higher_priority_number() -> None:
    data = recipe(
        "A X Y Z",
        [transition("A", "s"), transition("X", "Z", "always", 1), transition("s", "Z")],
        [],
        branch("s", "selection", "X Y"),
    )
    assert [arc.targets for arc in Structure(net_of(data).recipe).arcs if arc.sources == ("X",)] == [("Y",), ("Z",)]
