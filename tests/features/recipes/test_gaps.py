"""Transitions, steps and actions that no run comes to, each found once."""

import pytest

from edge.features.recipes.check import check_net
from edge.features.recipes.finding import FindingKind
from edge.features.simulator.script import parse_script
from edge.features.simulator.virtual_simulation import simulate
from tests.features.recipes.findings import found
from tests.features.recipes.recipes import Json, action, net_of, recipe, way

GAPS = {FindingKind.NEVER_CLEARS, FindingKind.NEVER_REACHED, FindingKind.WORK_CUT_OFF}

NEVER: dict[str, tuple[Json, set[tuple[str, str]]]] = {
    "hidden by priority": (
        recipe(way("A", "B", "always"), way("A", "C", "x", 1)),
        {("never-clears", "A → C")},
    ),
    "hidden by list order": (
        recipe(way("A", "B", "x"), way("A", "C", "x and y"), way("A", "B", "always", 1)),
        {("never-clears", "A → C")},
    ),
    "hidden by the exit of a branch": (
        recipe(
            way("I", "sel"),
            way("sel", "End", "always", -1),
            way("A", "End", "x"),
            branches=[{"name": "sel", "type": "selection", "branches": [["A"]]}],
        ),
        {("never-clears", "A → End")},
    ),
    "hidden by an implied join": (
        recipe(
            way("I", "sel"),
            way("A", "End", "x", 1),
            way("sel", "End"),
            branches=[{"name": "sel", "type": "selection", "branches": [["A", "B"]]}],
        ),
        {("never-clears", "A → End")},
    ),
    "time beyond the limit": (
        recipe(way("A", "B", "always"), way("A", "C", "steps.A.T >= 40s"), actions=(action("a", "A"),)),
        {("never-clears", "A → C")},
    ),
    "always beside a time": (
        recipe(way("X", "B", "always"), way("X", "C", "steps.X.T >= 1s")),
        {("never-clears", "X → C")},
    ),
    "timed out without a limit": (
        recipe(way("A", "B"), way("A", "C", "actions.a.timed_out"), actions=(action("a", "A", timeout_seconds=0),)),
        {("never-clears", "A → C")},
    ),
    "constant": (recipe(way("A", "B", "never"), way("A", "C")), {("never-reached", "B")}),
    "contradiction": (recipe(way("A", "B", "x > 3 and x < 2"), way("A", "C")), {("never-reached", "B")}),
    "contradiction of texts": (
        recipe(way("A", "B", "x == 'l' and x == 'r'"), way("A", "C")),
        {("never-reached", "B")},
    ),
    "misspelt state": (
        recipe(
            way("A", "B", "actions.a.state == 'complete'"), way("A", "C", "actions.a.done"), actions=(action("a", "A"),)
        ),
        {("never-reached", "B")},
    ),
    "failure that ends the job": (
        recipe(
            way("A", "B"),
            way("B", "C", "actions.a.failed"),
            way("B", "D", "always", 1),
            way("C", "D"),
            actions=(action("a", "A"), action("b", "B")),
        ),
        {("never-reached", "C")},
    ),
    "never to a step with another way": (
        recipe(way("A", "B", "never"), way("A", "B", "x"), way("A", "C", "always", 1), way("C", "B")),
        {("never-clears", "A → B")},
    ),
}


@pytest.mark.parametrize("name", NEVER)
def test_part_without_a_run_is_found_once(name: str) -> None:
    data, expected = NEVER[name]
    assert found(data, information=False) == expected


def test_step_behind_one_that_is_never_reached_is_its_consequence() -> None:
    data = recipe(way("A", "B", "never"), way("A", "D"), way("B", "C"), way("C", "D"))
    assert found(data, information=False) == {("never-reached", "B")}


def test_transition_that_a_person_forces_is_not_reported() -> None:
    data = recipe(
        way("A", "B", "actions.a.done"), way("A", "C", "never"), actions=(action("a", "A"),), interventions=["force"]
    )
    assert found(data, information=False) == set()


CUT_OFF: dict[str, Json] = {
    "delay longer than the step": recipe(
        way("A", "B", "steps.A.T >= 2s"),
        actions=(action("a", "A", qualifier="D", duration_seconds=5), action("b", "B")),
    ),
    "left at once": recipe(way("A", "B", "not actions.a.done"), actions=(action("a", "A"), action("b", "B"))),
}


@pytest.mark.parametrize("name", CUT_OFF)
def test_work_that_is_always_cut_off_is_found(name: str) -> None:
    assert found(CUT_OFF[name], information=False) == {("work-cut-off", "a")}


@pytest.mark.parametrize("name", [*NEVER])
def test_script_of_what_no_run_does_leaves_its_step_by_another_way(name: str) -> None:
    data, _ = NEVER[name]
    net = net_of(data)
    scripts = [item for item in check_net(net).findings if item.script is not None]
    for item in scripts:
        trace = simulate(data, parse_script(dict(item.script or {})))
        assert any(not step["active"] for step in trace.steps), trace.steps


def test_gaps_of_plain_recipes_have_a_script() -> None:
    for name in ("hidden by priority", "time beyond the limit", "constant", "misspelt state"):
        findings = check_net(net_of(NEVER[name][0])).findings
        assert any(item.script is not None and item.kind in GAPS for item in findings), name
