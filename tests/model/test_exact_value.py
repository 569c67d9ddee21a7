"""A value with an OPC UA type that JSON cannot express: recognized by its form and converted to a plain value."""

import pytest

from edge.model.exact_value import ExactValue, exact_value, plain_value


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "UaType",
        [],
        {},
        {"Value": 7},
        {"UaType": True, "Value": 7},
        {"UaType": 6},
        {"UaType": 6, "Value": 7, "Unit": 1},
    ],
    ids=str,
)
def test_other_values_are_unchanged(value: object) -> None:
    assert exact_value(value) is None
    assert plain_value(value) == value


def test_exact_value_is_encoded_in_the_form_it_was_decoded_from() -> None:
    form = {"UaType": 8, "Value": ["1", "2"], "Dimensions": [1, 2]}
    exact = exact_value(form)
    assert exact == ExactValue(8, ["1", "2"], (1, 2))
    assert exact.as_json() == form


def test_long_integers_become_numbers_and_other_text_stays_text() -> None:
    assert plain_value({"UaType": 8, "Value": ["-9007199254740993", "seven"]}) == [-9007199254740993, "seven"]


@pytest.mark.parametrize("text", ["--5", "-", "", "5" * 5000])
def test_invalid_integer_text_stays_text(text: str) -> None:
    assert plain_value({"UaType": 9, "Value": text}) == text
