"""Conditions of Structured Text become expressions with the same meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.expression.syntax import parse
from edge.features.recipes.plcopen.st import PlcVariable, Scope, translate, translate_named
from edge.features.recipes.plcopen.st_tokens import StError, StKind

SCOPE = Scope(
    {"WAIT": "Wait", "LAST STEP": "Last Step"},
    {
        "READY": PlcVariable("Ready", StKind.TRUTH, "TRUE"),
        "COUNT": PlcVariable("Count", StKind.INTEGER),
        "LIMIT": PlcVariable("Limit", StKind.TIME, "T#2s", is_constant=True),
        "OTHER": PlcVariable("Other", StKind.TIME, "limit", is_constant=True),
        "LOOP": PlcVariable("Loop", StKind.TIME, "Loop", is_constant=True),
        "MADE": PlcVariable("Made", StKind.TRUTH, expression="actions.a.done"),
    },
)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("NOT a = b", "(not a) == b"),
        ("a < b = c", "(a < b) == c"),
        ("a = b < c", "a == (b < c)"),
        ("a = b <> c", "(a == b) != c"),
        ("a OR b XOR c AND d", "a or b != (c and d)"),
        ("a XOR b XOR c", "(a != b) != c"),
        ("a AND b AND c & d", "a and b and c and d"),
        ("(a OR b) AND c", "(a or b) and c"),
        ("a - b - c > 0", "a - b - c > 0"),
        ("a - (b - c) > 0", "a - (b - c) > 0"),
        ("a * (b + c) <= 2", "a * (b + c) <= 2"),
        ("-a + b > 0", "-a + b > 0"),
        ("NOT NOT a", "not not a"),
        ("wait.x", "steps.Wait.X"),
        ("Wait.T > T#2s", "steps.Wait.T > 2s"),
        ("WAIT.t >= limit", "steps.Wait.T >= 2s"),
        ("Wait.T > OTHER", "steps.Wait.T > 2s"),
        ("ready AND READY", "Ready and Ready"),
        ("ready = 1", "Ready == true"),
        ("undeclared OR UnDeclared", "undeclared or undeclared"),
        ("axle.torque > 5", "axle.torque > 5"),
        ("NOT made", "not (actions.a.done)"),
        ("1", "true"),
        ("a;", "a"),
    ],
)
def test_precedence_and_names_keep_their_meaning(text: str, expression: str) -> None:
    scope = Scope(SCOPE.steps, SCOPE.variables, spelling={})
    assert translate(text, scope).text == expression


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "empty"),
        ("a := b", "statements"),
        ("f(a)", "the call f"),
        ("a[1]", "array"),
        ("p^", "pointer"),
        ("%IX0.0", "address"),
        ("a.0", "member"),
        ("always", "rename it"),
        ("steps.a", "rename it"),
        ("job.id = 'x'", "rename it"),
        ("Wait", "a step has X and T"),
        ("Wait.count > 1", "a step has X and T"),
        ("Wait.T > 5", "different types"),
        ("count", "of type INT"),
        ("count AND ready", "of type INT"),
        ("ready > ready", "numbers are needed"),
        ("ready + 1 > 0", "numbers are needed"),
        ("Wait.T > loop", "not a literal"),
        ("limit.x = 1", "has members"),
        ("a AND", "value is expected"),
        ("(a", "not closed"),
        ("a b", "not expected"),
        ("a ** 2 = 4", "not expected"),
        ("(" * 40 + "a" + ")" * 40, "nested deeper"),
        (" AND ".join(["abcdefghij"] * 300), "longer than"),
        ("a ? b", "cannot be read"),
    ],
)
def test_a_condition_without_equal_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(StError, match=reason):
        translate(text, SCOPE)


def test_integer_division_and_mod_are_warned_about() -> None:
    warnings = [str(text) for text in translate("a / 2 > 1 AND count MOD 2 = 0 AND b / 2.0 > 1", SCOPE).warnings]
    assert warnings == [
        "`/` of two integers is not rounded here",
        "the remainder of MOD has the sign of the divisor here",
    ]
    assert translate("b / 2.0 > 1", SCOPE).warnings == ()


def test_a_named_transition_is_an_expression_with_or_without_its_name() -> None:
    texts = ["a AND b", ":= a AND b;", "Go := a AND b;", "GO:=a AND b"]
    assert {translate_named(text, Scope(), "Go").text for text in texts} == {"a and b"}
    with pytest.raises(StError, match="statements"):
        translate_named("Other := a", Scope(), "Go")


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("ready", "coalesce(Ready, true)"),
        ("NOT open", "not coalesce(open, false)"),
        ("count > 3", "coalesce(Count, 0) > 3"),
        ("name = 'a'", 'coalesce(name, "") == "a"'),
        ("age >= T#2s", "coalesce(age, 0s) >= 2s"),
        ("a = b", "a == b"),
        ("Wait.X AND made", "steps.Wait.X and (actions.a.done)"),
    ],
)
def test_defaults_replace_unknown_by_declared_or_zero_values(text: str, expression: str) -> None:
    scope = Scope(SCOPE.steps, SCOPE.variables, has_defaults=True, spelling={})
    assert translate(text, scope).text == expression


@given(st.text(alphabet="abAND ORXNOT()<>=+-*/.#;:'\"$16Ts_%^[]{}\n", max_size=60))
@pytest.mark.hypothesis
def test_any_text_is_translated_or_refused(text: str) -> None:
    try:
        translation = translate(text, Scope({"A": "A"}, {}, spelling={}))
    except StError:
        return
    parse(translation.text)
