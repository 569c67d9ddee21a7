"""Numbers are read from numbers and samples; any other value is named in the error."""

import math

import pytest

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.numbers import describe, finite, number_of, require_list, time_of


def test_numbers_are_read_from_plain_values_and_samples() -> None:
    assert [number_of(text) for text in (5, 2.5, {"at": 1, "value": 3})] == [5, 2.5, 3]


@pytest.mark.parametrize("item", [True, "5", None, [5], {}, {"value": "5"}, {"value": False}])
def test_other_values_are_refused_as_numbers(item: object) -> None:
    with pytest.raises(NodeError, match="numbers or samples"):
        number_of(item)


@pytest.mark.parametrize("value", [None, 5, "text", {"a": 1}])
def test_input_that_is_not_a_list_is_named(value: object) -> None:
    with pytest.raises(NodeError, match=str(describe(value))):
        require_list(value)


@pytest.mark.parametrize("item", [5, {"value": 5}, {"at": "1", "value": 5}, {"at": True, "value": 5}])
def test_item_without_a_time_names_the_setting(item: object) -> None:
    with pytest.raises(NodeError, match="samples"):
        time_of(item)


def test_results_that_are_not_finite_become_null() -> None:
    assert [finite(value) for value in (1, 1.5, math.inf, math.nan, 10**400)] == [1, 1.5, None, None, None]


@pytest.mark.parametrize(
    ("value", "name"),
    [(None, "null"), (True, "a boolean"), (1.5, "a number"), ("x", "a text"), ([], "a list"), ({}, "an object")],
)
def test_value_types_are_described_in_words(value: object, name: str) -> None:
    assert str(describe(value)) == name
