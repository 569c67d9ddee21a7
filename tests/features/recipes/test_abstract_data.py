"""Abstract data: representative values of names, tried in every combination that is asked for."""

from edge.expression.value import UNKNOWN
from edge.features.recipes.abstract_data import AbstractData, shown_values, written
from tests.features.recipes.recipes import action, net_of, recipe, way


def values_of(condition: str, *path: str) -> list[object]:
    """Return the values that a name of a condition takes."""
    data = AbstractData(net_of(recipe(way("A", "B", condition), actions=(action("a", "A"),))))
    return [value for value, _ in data.choices(lambda: data.read(path))]


def test_number_has_a_value_for_each_result_of_its_comparisons() -> None:
    assert values_of("torque > 5", "torque") == [UNKNOWN, 4, 6]
    assert values_of("torque > 5 and torque != 7", "torque") == [UNKNOWN, 4, 7, 6]


def test_text_has_each_compared_value_and_another_one() -> None:
    assert values_of("side == 'left'", "side") == [UNKNOWN, "left", "another value"]


def test_truth_and_member_of_a_result_are_chosen() -> None:
    assert values_of("ok", "ok") == [UNKNOWN, True, False]
    assert values_of("actions.a.result.ok", "actions", "a", "result", "ok") == [UNKNOWN, True, False]


def test_combinations_are_those_that_are_asked_for() -> None:
    data = AbstractData(net_of(recipe(way("A", "B", "x and y"))))
    combinations = [values for _, values in data.choices(lambda: data.read(("x",)) is True and data.read(("y",)))]
    assert len(combinations) == 5
    assert data.is_complete


def test_values_are_written_as_conditions_write_them() -> None:
    assert written(("actions", "a", "result", "list", 0)) == "actions.a.result.list[0]"
    assert str(shown_values({("x",): False, ("y",): UNKNOWN})) == "x is false, y: no value yet"
