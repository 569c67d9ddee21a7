"""The kind `expression`: conditions over tags."""

from typing import Any

import pytest

from edge.expression.syntax import ExpressionSyntaxError, Kind
from edge.features.telemetry.rules.comparison import compile_tag_condition
from tests.features.telemetry.rules.replayed import events, run


def rule(when: str) -> dict[str, Any]:
    return {"kind": "expression", "when": when}


@pytest.mark.parametrize(
    ("when", "lines", "expected"),
    [
        ("a.b > 5", [(0, "a.b", 6), (1, "a.b", 7), (2, "a.b", 5)], [(0, "raised"), (2, "cleared")]),
        ("a + b > 5", [(0, "a", 6), (1, "b", 0), (2, "b", -1)], [(1, "raised"), (2, "cleared")]),
        # Unknown keeps the state; the last good value counts.
        ("10 / a > 1", [(0, "a", 5), (1, "a", 0), (2, "a", 20)], [(0, "raised"), (2, "cleared")]),
        ("a > 5", [(0, "a", 6), (1, "a", 1, "bad"), (2, "a", float("nan")), (3, "a", None)], [(0, "raised")]),
        ("a > 5", [(0, "a", 6, "uncertain")], [(0, "raised")]),
        # Values of a wrong type are ignored: the number before stays.
        ("a > 5 and b", [(0, "a", 6), (1, "a", "x"), (2, "a", True), (3, "b", True)], [(3, "raised")]),
        ("a and b", [(0, "a", True), (1, "a", 0), (2, "b", True)], [(2, "raised")]),
        ("s == 'x'", [(0, "s", "x"), (1, "s", 5), (2, "s", "y")], [(0, "raised"), (2, "cleared")]),
        ("a == b", [(0, "a", 1), (1, "b", "x"), (2, "b", 1)], [(2, "raised")]),
        ("a > 5", [(0, "a", [9]), (1, "a", {"x": 1})], []),
        ("m.x[2] > 5", [(0, "m.x[2]", 6)], [(0, "raised")]),
        ("m['x-1'] > 5", [(0, "m.x-1", 6)], [(0, "raised")]),
        ("coalesce(a, 0) > 5 or b > 5", [(0, "b", 6)], [(0, "raised")]),
    ],
)
def test_condition_is_evaluated_over_the_last_good_tag_values(when: str, lines: list[Any], expected: list[Any]) -> None:
    assert events(rule(when), lines) == expected


def test_subject_is_the_id_of_the_rule() -> None:
    assert run(rule("a > 1") | {"id": "both"}, [(0, "a", 2)]) == [(0, "both", "both", "raised", 500)]


def test_required_value_types_are_inferred_from_the_condition() -> None:
    condition = compile_tag_condition("a > 5 and s == 'x' and t and u == v")
    assert condition.tags == {"a": Kind.NUMBER, "s": Kind.STRING, "t": Kind.TRUTH, "u": None, "v": None}
    assert not condition.accepts("a", "5")
    assert condition.accepts("u", "5")
    assert not condition.accepts("u", [5])


def test_expression_that_is_not_boolean_is_refused() -> None:
    with pytest.raises(ExpressionSyntaxError):
        compile_tag_condition("a + 1")
