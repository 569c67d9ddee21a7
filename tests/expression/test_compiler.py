"""Compiled expressions: values, unknowns, static checks, and arithmetic against an independent evaluator."""

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simpleeval import SimpleEval

from edge.expression.compiler import compile_condition, compile_value
from edge.expression.syntax import ExpressionSyntaxError, Name
from edge.expression.value import UNKNOWN, Evaluate, EvaluationError
from edge.foundation.text import Text


def resolve(name: Name) -> Evaluate:
    """Read a name from the mapping that is the context."""
    key = str(name.path[0])
    if key == "forbidden":
        raise ExpressionSyntaxError(Text("this name is forbidden"), name.start)
    return lambda context: context.get(key, UNKNOWN)


def value(text: str, **context: Any) -> object:
    return compile_value(text, resolve).evaluate(context)


@pytest.mark.parametrize(
    ("text", "context", "expected"),
    [
        ("a + b * 2", {"a": 1, "b": 3}, 7),
        ("10 - 3 - 2", {}, 5),
        ("2 * (3 + 4)", {}, 14),
        ("-a", {"a": 5}, -5),
        ("a-1", {"a": 5}, 4),
        ("7 % 4 * 2", {}, 6),
        ("a / 0", {"a": 1}, UNKNOWN),
        ("a + 1", {}, UNKNOWN),
        ("min(a, 2, 5)", {"a": 3}, 2),
        ("max(a, 2)", {}, UNKNOWN),
        ("abs(a)", {"a": -2.5}, 2.5),
        ("round(a)", {"a": 2.5}, 3),
        ("round(a, 1)", {"a": 2.25}, 2.3),
        ("coalesce(a, b, 3)", {}, 3),
        ("coalesce(a, b, 3)", {"b": float("nan")}, 3),
        ("coalesce(a, 'none')", {"a": "x"}, "x"),
        ("coalesce(a, b)", {}, UNKNOWN),
        ("if(a > 1, 'hot', 'cold')", {"a": 2}, "hot"),
        ("if(a > 1, 'hot', 'cold')", {"a": 1}, "cold"),
        ("if(a > 1, 'hot', 'cold')", {}, UNKNOWN),
        ("if(true, 1, 1 / 0)", {}, 1),
        ("a", {"a": float("inf")}, UNKNOWN),
        ("a", {"a": None}, UNKNOWN),
        ("a * 0", {"a": float("nan")}, UNKNOWN),
        ("a + 1", {"a": 10**30}, UNKNOWN),
        ("1.5min + 500ms", {}, 90.5),
    ],
)
def test_expression_evaluates_to_its_value(text: str, context: Mapping[str, Any], expected: object) -> None:
    found = value(text, **context)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a + 'x' > 1", "\"'x'\" is a string, where a number is needed (at character 5)"),
        ("a * (b > 1) > 1", "'b > 1' is true or false, where a number is needed"),
        ("min(1, true) > 1", "'true' is true or false, where a number is needed"),
        ("if(a + 1, 2, 3) > 1", "'a + 1' is a number, where true or false is needed"),
        ("a + 1", "'a + 1' is a number, where true or false is needed"),
        ("x or a + 1", "'a + 1' is a number, where true or false is needed"),
        ("a + 1 == 'x'", "'a + 1' is a number, where a string is needed"),
        ("forbidden > 1", "this name is forbidden (at character 1)"),
        ("1 > 2 or forbidden", "this name is forbidden (at character 10)"),
    ],
)
def test_condition_with_wrong_kinds_or_forbidden_names_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as error:
        compile_condition(text, resolve)
    assert reason in str(error.value)


def test_value_of_a_wrong_kind_raises_and_names_the_part() -> None:
    with pytest.raises(EvaluationError, match="'a' is 'x', which is not a number"):
        value("1 + a", a="x")
    with pytest.raises(EvaluationError, match=r"'a \+ 1 > b' compares a number with a string"):
        value("a + 1 > b", a=1, b="x")


def test_expression_without_names_has_a_constant_value() -> None:
    assert compile_condition("1 + 1 == 2", resolve).constant is True
    assert compile_condition("a + 1 > 2", resolve).constant is UNKNOWN
    assert compile_value("2 * 3", resolve).constant == 6


def test_unmet_parts_of_a_calculation_show_the_values_of_its_names() -> None:
    expression = compile_condition("ok and (a + b) / 2 > 10", resolve)
    (unmet,) = expression.explain({"ok": True, "a": 4})
    assert (unmet.text, str(unmet.because)) == ("(a + b) / 2 > 10", "a is 4, b: no value yet")
    assert expression.explain({"ok": True, "a": 40, "b": 10}) == ()


def test_deepest_and_longest_expressions_evaluate() -> None:
    assert value("-" * 32 + "a", a=1) == 1
    assert value("(" * 32 + "a" + ")" * 32, a=1) == 1
    assert value("abs(" * 32 + "a" + ")" * 32, a=-1) == 1
    assert value("1" + "+1" * 499) == 500
    assert value("9*" * 499 + "9") is UNKNOWN


NUMBERS = st.integers(-100, 100) | st.floats(-100, 100).map(lambda number: round(number, 3))


@st.composite
def calculations(draw: st.DrawFn, depth: int = 3) -> str:
    """Write a calculation in the syntax that both evaluators read."""
    kind = draw(st.integers(0, 6 if depth else 1))
    below = calculations(depth - 1) if depth else st.nothing()
    match kind:
        case 0:
            return str(draw(NUMBERS))
        case 1:
            return draw(st.sampled_from(["a", "b", "c"]))
        case 2:
            return f"-{draw(below)}"
        case 3:
            return f"({draw(below)})"
        case 4:
            arguments = draw(st.lists(below, min_size=2, max_size=3))
            return f"{draw(st.sampled_from(['min', 'max']))}({', '.join(arguments)})"
        case 5:
            return f"abs({draw(below)})"
        case _:
            parts = draw(st.lists(below, min_size=2, max_size=3))
            words = [f" {draw(st.sampled_from('+-*/%'))} " for _ in parts[1:]]
            return parts[0] + "".join(word + part for word, part in zip(words, parts[1:], strict=True))


def oracle(text: str, context: Mapping[str, Any]) -> object:
    """Evaluate with simpleeval; None where there is no number in bounds."""
    functions = {"min": min, "max": max, "abs": abs}
    try:
        found = SimpleEval(names=dict(context), functions=functions).eval(text)
    except ZeroDivisionError:
        return UNKNOWN
    return found


@given(calculations(), st.fixed_dictionaries(dict.fromkeys("abc", NUMBERS)))
def test_arithmetic_agrees_with_simpleeval(text: str, context: dict[str, Any]) -> None:
    found = value(text, **context)
    expected = oracle(text, context)
    bounded = isinstance(expected, float) or (isinstance(expected, int) and abs(expected) < 2**62)
    if expected is UNKNOWN or bounded:
        assert (found, type(found)) == (expected, type(expected)) or (found is UNKNOWN and _leaves_bounds(text))


def _leaves_bounds(text: str) -> bool:
    """Return whether a calculation is large enough to leave 64 bits on its way."""
    return text.count("*") >= 8


@given(st.text(alphabet="abc ()+-*/%.,0159<>=ifmnxoard", max_size=60))
def test_any_text_evaluates_or_is_refused(text: str) -> None:
    try:
        expression = compile_value(text, resolve)
    except ExpressionSyntaxError:
        return
    try:
        assert expression.evaluate({"a": 1, "b": 2.5, "c": "x"}) is not None
    except EvaluationError:
        return
