"""The form of a trial has what conditions ask for, with its kind and the values that they compare with."""

from typing import Any

from edge.features.recipes.trial_fields import TrialField, parameter_fields, result_fields
from edge.model.recipe import Recipe, parse_recipe
from tests.sfc.recipes import action, recipe, transition


def parsed(*conditions: str) -> Recipe:
    data: dict[str, Any] = recipe(
        "A B", [transition("A", "B", condition) for condition in conditions], [action("a", "A"), action("b", "A")]
    )
    found, faults = parse_recipe(data)
    assert found is not None
    assert not faults
    return found


def test_fields_of_a_result_have_kind_and_compared_values() -> None:
    conditions = (
        "actions.a.result.torque > 85.5 and actions.a.result.torque < 90",
        "not actions.a.result.ok",
        "actions.a.result.grade == 'A' or 'B' == actions.a.result.grade",
        "actions.a.result.place.row + 1 > actions.a.result.limit",
        "actions.b.result.other and actions.a.result.list[0] > 5",
    )
    assert result_fields(parsed(*conditions), "a") == (
        TrialField(name="torque", kind="number", values=(85.5, 90)),
        TrialField(name="ok", kind="flag"),
        TrialField(name="grade", kind="text", values=("A", "B")),
        TrialField(name="place.row", kind="number"),
        TrialField(name="limit", kind="number"),
    )


def test_plain_names_may_come_with_a_result_or_with_the_order() -> None:
    found = parsed("torque_ok and job.parameters.kind == 'X' and actions.a.result.torque_ok")
    assert [field.name for field in result_fields(found, "a")] == ["torque_ok"]
    assert [field.name for field in result_fields(found, "b")] == ["torque_ok"]
    assert [(field.name, field.kind) for field in parameter_fields(found)] == [("kind", "text"), ("torque_ok", "flag")]
