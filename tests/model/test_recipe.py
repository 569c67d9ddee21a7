"""The words of a recipe, and every way to get them wrong."""

from typing import Any

import pytest

from edge.model.recipe import (
    RECIPE_DATASCHEMA,
    Action,
    Branch,
    BranchType,
    Interaction,
    Qualifier,
    Step,
    Transition,
    parse_recipe,
    recipe_schema,
)

STEP = {"name": "A", "initial": True}
ACTION = {"name": "a", "step": "A", "qualifier": "N", "interaction": "push_command", "type_id": "t"}
TRANSITION = {"source": "A", "target": "A", "condition": "again"}
BRANCH = {"name": "b", "type": "selection", "branches": [["A"]]}


def faults(**lists: Any) -> tuple[str, ...]:
    return parse_recipe({"steps": [STEP], **lists})[1]


def test_a_recipe_is_read_with_its_defaults() -> None:
    recipe, found = parse_recipe(
        {"steps": [STEP, {"name": "B"}], "transitions": [TRANSITION], "actions": [ACTION], "branches": [BRANCH]}
    )
    assert found == ()
    assert recipe is not None
    assert recipe.steps == (Step("A", initial=True), Step("B"))
    assert recipe.transitions == (Transition("A", "A", "again", 0),)
    assert recipe.actions == (Action("a", "A", Qualifier.N, Interaction.PUSH_COMMAND, "t", 0, {}, 0),)
    assert recipe.branches == (Branch("b", BranchType.SELECTION, (("A",),)),)


def test_lists_other_than_steps_may_be_left_out() -> None:
    recipe, found = parse_recipe({"steps": [STEP]})
    assert found == ()
    assert recipe is not None
    assert (recipe.transitions, recipe.actions, recipe.branches) == ((), (), ())


def test_pascal_case_means_the_same_and_parameters_are_left_as_they_are() -> None:
    action = {
        "Name": "a",
        "Step": "A",
        "Qualifier": "L",
        "Interaction": "pull_event",
        "TypeId": "t",
        "TimeoutSeconds": 1.5,
        "DurationSeconds": 2,
        "Parameters": {"TorqueSpec": {"Nm": 85}},
    }
    recipe, found = parse_recipe({"Steps": [{"Name": "A", "Initial": True}], "Actions": [action]})
    assert found == ()
    assert recipe is not None
    assert recipe.actions[0] == Action(
        "a", "A", Qualifier.L, Interaction.PULL_EVENT, "t", 1.5, {"TorqueSpec": {"Nm": 85}}, 2
    )


@pytest.mark.parametrize(
    ("lists", "fault"),
    [
        ({"colour": 1}, "unknown key 'colour'"),
        ({"STEPS": []}, "unknown key 'STEPS'"),
        ({"Steps": []}, "key 'steps' is given twice"),
        ({"steps": {}}, "'steps' must be a list"),
        ({"steps": ["A"]}, "steps[0]: must be an object"),
        ({"steps": [{}]}, "steps[0]: missing key 'name'"),
        ({"steps": [{"name": ""}]}, "steps[0] (): 'name' must be a string that is not empty"),
        ({"steps": [STEP, {"name": "B", "initial": 1}]}, "steps[1] (B): 'initial' must be true or false"),
        ({"transitions": [{**TRANSITION, "foo": 1}]}, "transitions[0] (A → A): unknown key 'foo'"),
        (
            {"transitions": [{**TRANSITION, "priority": 1.5}]},
            "transitions[0] (A → A): 'priority' must be a whole number",
        ),
        (
            {"transitions": [{**TRANSITION, "priority": True}]},
            "transitions[0] (A → A): 'priority' must be a whole number",
        ),
        ({"transitions": [{"source": "A", "target": "A"}]}, "transitions[0] (A → A): missing key 'condition'"),
        (
            {"actions": [{**ACTION, "timeout_seconds": "5"}]},
            "actions[0] (a): 'timeout_seconds' must be a number of seconds",
        ),
        (
            {"actions": [{**ACTION, "timeout_seconds": -1}]},
            "actions[0] (a): 'timeout_seconds' must be between 0 and 1000000000 seconds",
        ),
        (
            {"actions": [{**ACTION, "duration_seconds": float("inf")}]},
            "actions[0] (a): 'duration_seconds' must be between 0 and 1000000000 seconds",
        ),
        (
            {"actions": [{**ACTION, "qualifier": "X"}]},
            "actions[0] (a): 'qualifier' must be one of N, P, P0, P1, S, R, L, D, SD, DS, SL, not 'X'",
        ),
        (
            {"actions": [{**ACTION, "interaction": 3}]},
            "actions[0] (a): 'interaction' must be one of push_command, pull_event, not 3",
        ),
        ({"actions": [{**ACTION, "parameters": []}]}, "actions[0] (a): 'parameters' must be an object"),
        (
            {"branches": [{**BRANCH, "type": "or"}]},
            "branches[0] (b): 'type' must be one of selection, simultaneous, not 'or'",
        ),
        (
            {"branches": [{**BRANCH, "branches": ["A"]}]},
            "branches[0] (b): 'branches' must be a list of paths, each a list of step or branch names",
        ),
        (
            {"branches": [{**BRANCH, "branches": [[1]]}]},
            "branches[0] (b): 'branches' must hold step or branch names only",
        ),
    ],
)
def test_a_fault_of_form_is_told_with_its_place(lists: dict[str, Any], fault: str) -> None:
    assert faults(**lists) == (fault,)


@pytest.mark.parametrize("data", [None, [], "recipe", 7])
def test_what_is_no_object_is_no_recipe(data: object) -> None:
    assert parse_recipe(data) == (None, ("a recipe must be an object with steps, transitions, actions and branches",))


def test_a_recipe_without_steps_is_told_so() -> None:
    assert parse_recipe({}) == (None, ("missing key 'steps'",))


def test_all_faults_come_in_one_answer_and_the_rest_can_still_be_checked() -> None:
    recipe, found = parse_recipe(
        {"steps": [STEP], "actions": [{**ACTION, "qualifier": "?", "x": 1}, {**ACTION, "type_id": 3}]}
    )
    assert len(found) == 3
    assert recipe is not None
    assert recipe.actions[0].qualifier is Qualifier.N


def test_the_schema_bears_the_dataschema_as_its_id_and_refuses_unknown_keys() -> None:
    schema = recipe_schema()
    assert schema["$id"] == RECIPE_DATASCHEMA
    assert schema["$defs"]["Action"]["additionalProperties"] is False
    assert schema["$defs"]["Action"]["required"] == ["name", "step", "qualifier", "interaction", "type_id"]
    assert schema["$defs"]["Transition"]["required"] == ["source", "target", "condition"]
