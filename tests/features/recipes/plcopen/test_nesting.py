"""Parallel paths follow from the transitions that enter and end them."""

import pytest

from tests.features.recipes.plcopen.drawn import (
    chart,
    faults_of,
    fork,
    initial,
    join,
    jump,
    meet,
    recipe_of,
    step,
    when,
)

BOTH = (initial(1, "A"), when(2, "go", 1), fork(3, 2, name="Both"), step(4, "B", 3), step(5, "C", 3))


def test_parallel_paths_become_a_branch_with_the_name_of_the_divergence() -> None:
    recipe = recipe_of(chart(*BOTH, meet(6, 4, 5), when(7, "end", 6), step(8, "D", 7)))
    assert recipe["branches"] == [{"name": "Both", "type": "simultaneous", "branches": [["B"], ["C"]]}]
    assert [(item["source"], item["target"]) for item in recipe["transitions"]] == [("A", "Both"), ("Both", "D")]


def test_nested_divergences_and_convergences_become_nested_branches() -> None:
    recipe = recipe_of(
        chart(
            initial(1, "A"),
            when(2, "go", 1),
            fork(3, 2),
            fork(4, 3),
            step(5, "B", 4),
            step(6, "C", 4),
            step(7, "D", 3, x=9),
            meet(8, 5, 6),
            meet(9, 8, 7),
            when(10, "end", 9),
            step(11, "E", 10),
        )
    )
    assert [branch["branches"] for branch in recipe["branches"]] == [[["Parallel2"], ["D"]], [["B"], ["C"]]]


@pytest.mark.parametrize(
    ("more", "fault"),
    [
        ([when(6, "x", 4), jump(7, "A", 6)], "localId 6, line 10: leads into or out of parallel paths"),
        ([when(6, "x", 1, x=5), jump(7, "B", 6)], "leads into or out of parallel paths"),
        ([meet(6, 4), when(7, "x", 6), step(8, "D", 7)], "the parallel paths do not converge"),
        ([], "localId 2, line 6: the parallel paths do not converge"),
        (
            [meet(6, 1, 4), when(7, "x", 6), step(8, "D", 7)],
            "the convergence does not end all paths that began together",
        ),
    ],
)
def test_a_jump_into_or_out_of_parallel_paths_is_a_fault(more: list[str], fault: str) -> None:
    assert any(fault in text for text in faults_of(chart(*BOTH, *more)))


def test_a_convergence_of_steps_that_are_not_parallel_is_a_fault() -> None:
    data = chart(
        initial(1, "A"),
        when(2, "a", 1),
        step(3, "B", 2),
        when(4, "b", 1),
        step(5, "C", 4),
        meet(6, 3, 5),
        when(7, "x", 6),
        step(8, "D", 7),
    )
    assert any("do not stand in parallel paths" in text for text in faults_of(data))


def test_a_path_with_two_ends_is_a_fault_with_advice() -> None:
    data = chart(
        *BOTH,
        when(6, "x", 4),
        step(7, "E", 6),
        when(8, "y", 4),
        step(9, "F", 8),
        meet(10, 7, 5),
        meet(11, 9, 5),
        when(12, "e1", 10),
        when(13, "e2", 11),
        join(14, 12, 13),
        step(15, "D", 14),
    )
    assert any("ends in several steps" in text for text in faults_of(data))


def test_a_step_that_nothing_reaches_is_a_fault() -> None:
    data = chart(initial(1, "A"), when(2, "go", 1), step(3, "B", 2), step(4, "C", 5), when(5, "on", 4))
    assert faults_of(data) == ["localId 4, C, line 8: the step cannot be reached from the initial step"]
