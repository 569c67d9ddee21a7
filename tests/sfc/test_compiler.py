"""A recipe compiles to a net with its indexes."""

import json

import pytest

from edge.sfc.compiler import compile_recipe
from edge.sfc.identifiers import parse_association_key as key
from edge.sfc.net import Net
from tests.sfc.driving import Driven
from tests.sfc.recipes import action, branch, chain, faults_of, net_of, recipe, transition, wait


def test_the_source_of_a_net_compiles_to_the_same_net() -> None:
    data = chain("A B", action("a", "A", "S", parameters={"torque": [85, {"unit": "Nm"}]}), action("a", "B", "R"))
    net = net_of(data)
    again = compile_recipe(json.loads(net.source))
    assert isinstance(again, Net)
    assert (again.recipe, again.source) == (net.recipe, net.source)


def test_indexes_list_the_steps_affected_by_each_signal() -> None:
    net = net_of(
        recipe(
            "A B C D",
            [transition("A", "B", "ok"), transition("B", "C", "steps.B.T > 1s"), transition("C", "D", "1 < 2")],
            [action("a", "A", "S"), action("a", "B", "R"), wait("w", "C", type_id="part")],
        )
    )
    assert net.initial == "A"
    assert net.sensitive == {"A", "B"}
    assert net.timed == {"B"}
    assert net.terminal == {"D"}
    assert net.command_types == {"a.v1"}
    assert [net_action.key for net_action in net.starting["a"]] == [key("a@A")]
    assert [net_action.key for net_action in net.resetting["a"]] == [key("a@B")]
    assert [net_action.key for net_action in net.pulling["part"]] == [key("w@C")]


@pytest.mark.parametrize(
    ("condition", "needs"),
    [
        ("always", ("A",)),
        ("ok", ("A",)),
        ("steps.A.T > 1s", ()),
        ("steps.B.T > 1s", ("A",)),
        ("actions.a.failed", ()),
        ("actions.a.timed_out or ok", ()),
        ("actions.a.state == 'failed'", ()),
        ("actions.a.done", ()),
        ("actions.a.result.x", ("A",)),
        ("actions.a.attempts > 1", ("A",)),
        ("actions.b.failed", ("A",)),
        ("steps.A.count > 1", ("A",)),
    ],
)
def test_a_condition_on_the_time_or_the_actions_of_its_source_is_live(condition: str, needs: tuple[str, ...]) -> None:
    net = net_of(recipe("A B", [transition("A", "B", condition)], [action("a", "A"), action("b", "B")]))
    assert net.transitions[0].needs_done == needs


def test_live_convergence_waits_for_steps_absent_from_its_condition() -> None:
    data = recipe(
        "I A B End",
        [transition("I", "par"), transition("par", "End", "actions.a.failed or actions.a.done")],
        [action("a", "A"), action("b", "B")],
        branch("par", "simultaneous", "A", "B"),
    )
    assert net_of(data).transitions[1].needs_done == ("B",)


def test_action_name_refers_to_the_association_of_the_source_step() -> None:
    data = recipe(
        "A B C D",
        [transition("A", "B"), transition("B", "C", "actions.s.done"), transition("C", "D", "actions.s.attempts == 1")],
        [action("s", "A", "S"), action("s", "B", "R")],
    )
    driven = Driven(net_of(data))
    driven.answer("s", 1)
    assert driven.run.active == {"B"}


def test_the_condition_text_of_an_entry_reports_both_transitions() -> None:
    data = recipe(
        "A X Y",
        [transition("A", "sel", "go"), transition("sel", "X", "x or z"), transition("sel", "Y", "y")],
        [],
        branch("sel", "selection", "X", "Y"),
    )
    assert [net_transition.text for net_transition in net_of(data).transitions] == ["(go) and (x or z)", "(go) and (y)"]
    assert net_of(chain("A B")).transitions[0].text == ""
    assert net_of(recipe("A B", [transition("A", "B", "ok")])).transitions[0].text == "ok"


def test_too_many_paths_through_a_branch_are_refused() -> None:
    paths = [f"s{n}" for n in range(12)]
    data = recipe(
        "I " + " ".join(f"{path}a {path}b" for path in paths),
        [transition("I", "par")],
        [],
        branch("par", "simultaneous", *paths),
        *(branch(path, "selection", f"{path}a", f"{path}b") for path in paths),
    )
    assert "branch 'par': its selections multiply to more ways than can be followed" in faults_of(data)


def test_faults_of_every_kind_are_reported_in_one_answer() -> None:
    faulty = recipe(
        "A B X Y E F G",
        [
            transition("A", "B", "x = 1"),
            transition("B", "sim", "steps.Q.T > 1s"),
            transition("X", "G", "hop"),
            transition("sim", "E"),
            transition("E", "F"),
            transition("F", "E"),
        ],
        [action("a", "B", "L"), action("b", "Nowhere")],
        branch("sim", "simultaneous", "X", "Y"),
    )
    faulty["steps"].append({"name": "Z", "colour": 1})
    reported = "\n".join(faults_of(faulty))
    for part in (
        "unknown key 'colour'",
        "actions[0] (a, L in B): qualifier L needs",
        "unknown step 'Nowhere'",
        "write '=='",
        "unknown step 'Q'",
        "transitions[2] (X → G): unsafe",
        "step 'Z' cannot be reached",
        "livelock: E → F → E",
    ):
        assert part in reported
    assert len(reported.splitlines()) == 8


def test_condition_and_initial_step_faults_cause_no_further_faults() -> None:
    looped = recipe("A B", [transition("A", "B", "("), transition("B", "A", "(")])
    del looped["steps"][0]["initial"]
    assert [fault.split(":")[0] for fault in faults_of(looped)] == [
        "exactly one step must be initial, not none",
        "transitions[0] (A → B)",
        "transitions[1] (B → A)",
    ]
