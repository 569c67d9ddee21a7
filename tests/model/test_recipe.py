"""The members of a recipe, and the faults of its form."""

import copy
from collections.abc import Iterator
from typing import Any

import jsonschema
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
    return tuple(map(str, parse_recipe({"steps": [STEP], **lists})[1]))


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


def test_pascal_case_keys_are_accepted_and_parameters_stay_unchanged() -> None:
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
def test_malformed_member_is_reported_with_its_path(lists: dict[str, Any], fault: str) -> None:
    assert faults(**lists) == (fault,)


@pytest.mark.parametrize("data", [None, [], "recipe", 7])
def test_recipe_that_is_not_an_object_is_refused(data: object) -> None:
    recipe, found = parse_recipe(data)
    assert (recipe, list(map(str, found))) == (
        None,
        ["a recipe must be an object with steps, transitions, actions and branches"],
    )


def test_a_recipe_without_steps_is_reported() -> None:
    recipe, found = parse_recipe({})
    assert (recipe, list(map(str, found))) == (None, ["missing key 'steps'"])


def test_all_faults_are_reported_and_the_rest_can_still_be_checked() -> None:
    recipe, found = parse_recipe(
        {"steps": [STEP], "actions": [{**ACTION, "qualifier": "?", "x": 1}, {**ACTION, "type_id": 3}]}
    )
    assert len(found) == 3
    assert recipe is not None
    assert recipe.actions[0].qualifier is Qualifier.N


def test_schema_id_is_the_recipe_dataschema() -> None:
    assert recipe_schema()["$id"] == RECIPE_DATASCHEMA


WHOLE: dict[str, Any] = {
    "steps": [STEP],
    "transitions": [{**TRANSITION, "priority": 1}],
    "actions": [{**ACTION, "timeout_seconds": 1, "parameters": {"torque_nm": 60}, "duration_seconds": 1}],
    "branches": [BRANCH],
}


VALUES: tuple[Any, ...] = (None, True, -1, 7, 1.5, 2e9, "", "N", "selection", [], [1], [["x"]], [[1]], {})


def pascal(data: Any) -> Any:
    """Spell all keys in PascalCase, but those within parameters."""
    if isinstance(data, list):
        return [pascal(value) for value in data]
    if not isinstance(data, dict):
        return data
    return {
        "".join(word.capitalize() for word in key.split("_")): value if key == "parameters" else pascal(value)
        for key, value in data.items()
    }


def objects(data: Any) -> Iterator[dict[str, Any]]:
    """Yield a recipe's objects with keys of the recipe."""
    if isinstance(data, dict):
        yield data
    for item in data.values() if isinstance(data, dict) else data:
        if isinstance(item, (list, dict)) and item != {"torque_nm": 60}:
            yield from objects(item)


def changed() -> Iterator[dict[str, Any]]:
    """Yield the whole recipe with one thing changed: each value in turn, each key left out, twice or unknown."""
    for number, here in enumerate(objects(WHOLE)):
        for key in here:
            for value in VALUES:
                data = copy.deepcopy(WHOLE)
                list(objects(data))[number][key] = value
                yield data
            for doing in ("leave out", "twice", "unknown"):
                data = copy.deepcopy(WHOLE)
                there = list(objects(data))[number]
                match doing:
                    case "leave out":
                        del there[key]
                    case "twice":
                        there |= pascal({key: there[key]})
                    case _:
                        there[f"{key}_"] = there.pop(key)
                yield data


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"title": {"de": "Achse"}, "Description": "Rear axle", "verdict": "always"}, None),
        ({"title": ""}, "'title' must be a text of 1 to"),
        ({"description": {"german language": "x"}}, "'description' must have languages such as 'de'"),
        ({"verdict": True}, "'verdict' must be a string"),
        ({"titel": "Achse"}, "unknown key 'titel'; did you mean title?"),
    ],
)
def test_texts_of_a_recipe_are_plain_or_by_language(members: dict[str, object], fault: str | None) -> None:
    _, faults = parse_recipe({"steps": [{"name": "A", "initial": True}], **members})
    assert len(faults) == (fault is not None)
    assert (fault or "") in " ".join(map(str, faults))


def test_schema_and_parser_refuse_the_same_forms() -> None:
    schema = jsonschema.Draft202012Validator(recipe_schema())
    assert schema.is_valid(WHOLE)
    assert schema.is_valid(pascal(WHOLE))
    for data in changed():
        is_valid = schema.is_valid(data)
        assert is_valid is not bool(parse_recipe(data)[1]), data
        assert schema.is_valid(pascal(data)) is not bool(parse_recipe(pascal(data))[1]), data
