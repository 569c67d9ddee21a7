"""Three-valued logic and comparisons, as tables."""

from itertools import product
from typing import Any

import pytest

from edge.sfc.value import MAX_SHOWN_LENGTH, UNKNOWN, ConditionFaultError, boolean, compare, follow, negate, show


@pytest.mark.parametrize(("value", "negated"), [(True, False), (False, True), (UNKNOWN, UNKNOWN)])
def test_negation(value: object, negated: object) -> None:
    assert negate(lambda _: value)(None) is negated


@pytest.mark.parametrize("value", [True, False, UNKNOWN])
def test_truth_values_are_boolean(value: object) -> None:
    assert boolean(lambda _: value, "x")(None) is value


def test_null_is_no_value_yet() -> None:
    assert boolean(lambda _: None, "x")(None) is UNKNOWN


@pytest.mark.parametrize("value", [1, 0, "true", [], {}])
def test_nothing_else_is_boolean(value: object) -> None:
    with pytest.raises(ConditionFaultError, match="neither true nor false"):
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
def test_comparisons(word: str, less: bool, equal: bool, greater: bool) -> None:  # noqa: FBT001
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
    with pytest.raises(ConditionFaultError, match="a =="):
        compare(word, left, right, "a == b")


def test_truth_values_are_equal_or_not() -> None:
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
def test_walking_into_a_result(tail: tuple[str | int, ...], found: object) -> None:
    assert follow(lambda _: {"a": [{"b": 1}]}, tail)(None) == found


def test_values_are_shown_as_the_language_spells_them_and_not_too_long() -> None:
    assert [show(value) for value in (True, False, "a", 1.5)] == ["true", "false", "'a'", "1.5"]
    assert len(show("x" * 10_000)) == MAX_SHOWN_LENGTH + 1
