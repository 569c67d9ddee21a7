"""Three-valued logic, comparisons and arithmetic, as tables."""

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.expression.syntax import Kind
from edge.expression.value import (
    MAX_INTEGER,
    MAX_SHOWN_LENGTH,
    UNKNOWN,
    EvaluationError,
    boolean,
    calculate,
    compare,
    follow,
    is_unknown,
    kind_of_value,
    negate,
    number,
    round_half_away,
    show,
)


@pytest.mark.parametrize(("value", "negated"), [(True, False), (False, True), (UNKNOWN, UNKNOWN)])
def test_negation_inverts_truth_and_keeps_unknown(value: object, negated: object) -> None:
    assert negate(lambda _: value)(None) is negated


@pytest.mark.parametrize("value", [True, False, UNKNOWN])
def test_truth_values_are_boolean(value: object) -> None:
    assert boolean(lambda _: value, "x")(None) is value


def test_null_evaluates_to_unknown() -> None:
    assert boolean(lambda _: None, "x")(None) is UNKNOWN


@pytest.mark.parametrize("value", [1, 0, "true", [], {}])
def test_other_values_are_refused_as_boolean(value: object) -> None:
    with pytest.raises(EvaluationError, match="neither true nor false"):
        boolean(lambda _: value, "x")(None)


@pytest.mark.parametrize(
    ("word", "less", "equal", "greater"),
    [
        ("<", True, False, False),
        ("<=", True, True, False),
        ("==", False, True, False),
        ("!=", True, False, True),
        (">=", False, True, True),
        (">", False, False, True),
    ],
)
def test_comparison_orders_numbers_and_strings(word: str, less: bool, equal: bool, greater: bool) -> None:  # noqa: FBT001 - a parameter
    for low, high in [(1, 2.5), ("a", "b")]:
        assert [compare(word, *pair, "x") for pair in [(low, high), (low, low), (high, low)]] == [less, equal, greater]


@pytest.mark.parametrize("word", ["==", "!=", "<"])
def test_a_comparison_with_an_unknown_is_unknown(word: str) -> None:
    for left, right in product([UNKNOWN, None, 1], repeat=2):
        if (left, right) != (1, 1):
            assert compare(word, left, right, "x") is UNKNOWN


@pytest.mark.parametrize(
    ("word", "left", "right"),
    [
        ("==", 1, "1"),
        ("<", "a", 1),
        ("==", True, 1),
        ("<", True, False),
        ("==", [1], [1]),
        ("==", {}, {}),
        ("!=", [1], 1),
    ],
)
def test_values_of_different_or_incomparable_kinds_are_a_fault(word: str, left: Any, right: Any) -> None:
    with pytest.raises(EvaluationError, match="a =="):
        compare(word, left, right, "a == b")


def test_truth_values_compare_by_equality() -> None:
    assert compare("==", left=True, right=True, text="") is True
    assert compare("!=", left=True, right=True, text="") is False


@pytest.mark.parametrize(
    ("tail", "found"),
    [
        ((), {"a": [{"b": 1}]}),
        (("a", 0, "b"), 1),
        (("a", 1), UNKNOWN),
        (("x",), UNKNOWN),
        ((0,), UNKNOWN),
        (("a", "b"), UNKNOWN),
        (("a", 0, "b", "c"), UNKNOWN),
    ],
)
def test_member_path_is_followed_into_a_result(tail: tuple[str | int, ...], found: object) -> None:
    assert follow(lambda _: {"a": [{"b": 1}]}, tail)(None) == found


def test_shown_values_use_expression_syntax_and_are_cut() -> None:
    assert [show(value) for value in (True, False, "a", 1.5)] == ["true", "false", "'a'", "1.5"]
    assert len(show("x" * 10_000)) == MAX_SHOWN_LENGTH + 1


@pytest.mark.parametrize("value", [None, UNKNOWN, float("nan"), float("inf"), float("-inf")])
def test_null_nan_and_infinity_are_unknown_everywhere(value: object) -> None:
    assert is_unknown(value)
    assert number(value, "x") is UNKNOWN
    assert compare("==", value, 1, "x") is UNKNOWN
    assert compare("<", 1, value, "x") is UNKNOWN


@pytest.mark.parametrize(
    ("word", "left", "right", "result"),
    [
        ("+", 1, 2.5, 3.5),
        ("-", 1, 3, -2),
        ("*", 4, 0.5, 2.0),
        ("/", 7, 2, 3.5),
        ("/", 1, 0, UNKNOWN),
        ("%", 7, 0.0, UNKNOWN),
        ("%", 7, 3, 1),
        ("%", -7, 3, 2),
        ("%", 7, -3, -2),
        ("*", 1e308, 10, UNKNOWN),
        ("*", MAX_INTEGER, 2, UNKNOWN),
        ("+", MAX_INTEGER, 0, MAX_INTEGER),
        ("-", -MAX_INTEGER, 1, UNKNOWN),
    ],
)
def test_calculation_returns_a_bounded_result_or_unknown(word: str, left: float, right: float, result: object) -> None:
    found = calculate(word, left, right)
    assert (found, type(found)) == (result, type(result))


@pytest.mark.parametrize("value", ["1", True, [], {}])
def test_only_numbers_are_accepted_in_calculations(value: object) -> None:
    with pytest.raises(EvaluationError, match=r"'x' is .*, which is not a number"):
        number(value, "x")


def test_integer_beyond_64_bits_is_an_unknown_operand() -> None:
    assert number(10**5000, "x") is UNKNOWN


@pytest.mark.parametrize(
    ("value", "digits", "rounded"),
    [
        (2.5, 0, 3),
        (-2.5, 0, -3),
        (0.4999999999999999, 0, 0),
        (2.675, 2, 2.68),
        (1.005, 2, 1.01),
        (7, 2, 7),
        (1e300, 0, UNKNOWN),
        (1e300, 2, 1e300),
        (123.456, 15, 123.456),
    ],
)
def test_halves_are_rounded_away_from_zero(value: float, digits: int, rounded: object) -> None:
    found = round_half_away(value, digits)
    assert (found, type(found)) == (rounded, type(rounded))


@given(st.floats(-1e6, 1e6), st.integers(0, 6))
def test_rounding_differs_from_python_only_at_halves(value: float, digits: int) -> None:
    rounded = round_half_away(value, digits)
    assert rounded is not UNKNOWN
    assert abs(rounded - value) <= 0.5 * 10**-digits * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1, Kind.NUMBER), (1.5, Kind.NUMBER), ("a", Kind.STRING), (True, Kind.TRUTH), ([], None), ({}, None)],
)
def test_value_has_the_kind_of_its_type(value: object, kind: Kind | None) -> None:
    assert kind_of_value(value) is kind
