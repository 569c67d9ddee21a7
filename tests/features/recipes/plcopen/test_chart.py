"""Connections of a chart are followed, and each that leads nowhere is a fault."""

import pytest

from tests.features.recipes.plcopen.drawn import (
    chart,
    choice,
    element,
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


def ways(data: bytes) -> list[str]:
    """Return the transitions of the recipe of a file, the first tested first."""
    transitions = sorted(recipe_of(data)["transitions"], key=lambda item: int(item.get("priority", 0)))
    return [f"{item['source']} {item['target']} {item['condition']}" for item in transitions]


def test_a_selection_is_tested_by_priority_then_from_left_then_as_written() -> None:
    data = chart(
        initial(1, "A"),
        choice(2, 1),
        when(3, "last", 2, x=9),
        when(4, "fourth", 2, x=9),
        when(5, "third", 2, x=1),
        when(6, "second", 2, x=5, priority="3"),
        when(7, "first", 2, x=7, priority="1"),
        join(8, 3, 4, 5, 6, 7),
        step(9, "B", 8),
    )
    assert ways(data) == [f"A B {name}" for name in ("first", "second", "third", "last", "fourth")]


def test_a_jump_names_a_step_without_regard_to_case() -> None:
    data = chart(initial(1, "A"), when(2, "go", 1), step(3, "Check", 2), when(4, "again", 3), jump(5, "CHECK", 4))
    assert ways(data) == ["A Check go", "Check Check again"]


def test_a_jump_to_a_divergence_enters_all_its_paths() -> None:
    data = chart(
        initial(1, "A"),
        when(2, "go", 1),
        fork(3, 2, name="Both"),
        step(4, "B", 3),
        step(5, "C", 3),
        meet(6, 4, 5),
        when(7, "done", 6),
        step(8, "D", 7),
        when(9, "again", 8),
        jump(10, "both", 9),
    )
    assert ways(data) == ["A Both go", "Both D done", "D Both again"]


def test_several_connections_into_a_step_are_a_convergence() -> None:
    data = chart(initial(1, "A"), when(2, "x", 1), when(3, "y", 1), step(4, "B", 2, 3))
    assert ways(data) == ["A B x", "A B y"]


END = (when(2, "go", 1), step(3, "End", 2))


@pytest.mark.parametrize(
    ("elements", "faults"),
    [
        (
            [initial(1, "A", 3), *END[:1], step(3, "End", 2)],
            ["localId 1, A, line 5: step 3 cannot stand directly before step"],
        ),
        (
            [initial(1, "A"), when(2, "go", 9), step(3, "End", 2)],
            ["localId 2, line 6: connected to localId 9, which is not there"],
        ),
        ([initial(1, "A"), *END, jump(4, "Nowhere", 2)], ["several elements follow without a divergence: 3, 4"]),
        (
            [initial(1, "A"), *END, when(5, "b", 3), jump(6, "Nowhere", 5)],
            ["the jump names 'Nowhere', which is not a step"],
        ),
        ([initial(1, "A"), *END, step(4, "a", 2)], ["the name stands in line 5, too", "several elements"]),
        ([initial(1, "A"), *END, step(4, "", 2)], ["the step has no name", "several elements"]),
        ([initial(1, "A"), *END, step(4, "Alone")], ["localId 4, Alone, line 8: nothing leads to the step"]),
        ([initial(1, "A"), *END, choice(4, 3)], ["nothing is connected after selectionDivergence"]),
        (
            [initial(1, "A"), *END, join(4)],
            ["nothing is connected before selectionConvergence"],
        ),
        ([initial(1, "A"), *END, when(4, "x", 3)], ["localId 4, line 8: nothing is connected after transition"]),
        ([initial(1, "A"), *END, element("actionBlock", 4)], ["nothing is connected before actionBlock"]),
        (
            [initial(1, "A"), *END, element("actionBlock", 4, 2)],
            ["transition 2 cannot stand directly before actionBlock"],
        ),
        (
            [initial(1, "A"), when(2, "a", 1), when(4, "b", 2), step(3, "End", 4)],
            ["transition 2 cannot stand", "several|after"],
        ),
        ([initial(1, "A"), when(2, "a", 1, 3), step(3, "End", 2)], ["transition has several connections before it"]),
        ([initial(1, "A"), when(2, "a", 1, priority="-1"), step(3, "End", 2)], ["the priority '-1' is not a number"]),
        ([initial(1, "A"), *END, initial(4, "B")], ["localId 4, B, line 8: step 'A' is initial, too"]),
        ([step(1, "A"), *END], ["the chart has no initial step", "nothing leads to the step"]),
        ([initial(1, "A", negated="true"), *END], ["a negated step is not carried over"]),
    ],
)
def test_an_element_that_does_not_fit_is_a_fault_with_its_place(elements: list[str], faults: list[str]) -> None:
    reported = faults_of(chart(*elements))
    for fault in faults:
        assert any(word in text for text in reported for word in fault.split("|")), reported


def test_circles_of_connections_are_faults() -> None:
    divergences = chart(initial(1, "A"), choice(2, 3), choice(3, 2), when(4, "a", 3), step(5, "B", 4))
    assert any("circle" in fault for fault in faults_of(divergences))
    convergences = chart(initial(1, "A"), when(2, "a", 1), join(3, 2, 4), join(4, 3))
    assert any("circle" in fault for fault in faults_of(convergences))
    parallel = chart(initial(1, "A"), when(2, "a", 1), fork(3, 2, 4), fork(4, 3), step(5, "B", 4))
    assert faults_of(parallel)


def test_every_fault_is_reported_at_once() -> None:
    data = chart(initial(1, "A"), when(2, "f(x)", 1), step(3, "B", 9), jump(4, "C"), element("macroStep", 5))
    reported = faults_of(data)
    for number in (2, 3, 4, 5):
        assert any(fault.startswith(f"localId {number},") for fault in reported), reported
