"""Expressions become Structured Text where it has the same meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.expression.syntax import parse
from edge.features.recipes.plcopen.st import Scope, translate
from edge.features.recipes.plcopen.st_text import declare_variables, is_plain_name, st_of

STEPS = {"Wait": "Wait", "Last Step": "Last_Step"}


def written(text: str) -> str:
    return st_of(text, STEPS, declare_variables([text], STEPS.values()))


@pytest.mark.parametrize(
    ("text", "structured"),
    [
        ("always", "TRUE"),
        ("never", "FALSE"),
        ("a and (b or not c)", "a AND (b OR NOT c)"),
        ("a == 1 or b", "a = 1 OR b"),
        ("not (a == 1)", "NOT (a = 1)"),
        ("(a < 1) == b", "a < 1 = b"),
        ("a - (b - 1) >= -2.5", "a - (b - 1) >= -2.5"),
        ("a * (b + 1e22) > 0", "a * (b + 1.0e+22) > 0"),
        ('code == "it\'s $5"', "code = 'it$'s $$5'"),
        ("steps.Wait.T >= 1.5s", "steps"),
        ('steps["Last Step"].X and not done', "Last_Step.X AND NOT done"),
        ('steps.Wait.T > steps["Last Step"].T', "Wait.T > Last_Step.T"),
    ],
)
def test_an_expression_is_written_with_its_precedence(text: str, structured: str) -> None:
    assert written(text) == ("Wait.T >= T#1.5s" if structured == "steps" else structured)


@pytest.mark.parametrize(
    "text",
    [
        "actions.a.done",
        "job.parameters.x == 1",
        "steps.Wait.count < 3",
        "coalesce(a, false)",
        "x in mirrors.m",
        "a / 2 > 1",
        "a % 2 == 0",
        "a.b == 1",
        "a == b",
        "a and A",
        "Wait and a",
        "if",
        'code == "ä"',
        "steps.Wait.T > limit",
        "größe > 1",
        "t > 1",
    ],
)
def test_an_expression_without_form_is_not_written(text: str) -> None:
    assert written(text) == ""


EXPRESSIONS = st.recursive(
    st.sampled_from(
        ["a", "b", "x > 1", "x + 2 * y < 3", "steps.Wait.X", "steps.Wait.T >= 2s", "true", "actions.a.done"]
    ),
    lambda inner: st.one_of(
        inner.map(lambda text: f"not ({text})"),
        st.tuples(inner, st.sampled_from(["and", "or", "==", "!="]), inner).map(
            lambda part: f"({part[0]}) {part[1]} ({part[2]})"
        ),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS)
@pytest.mark.hypothesis
def test_written_text_means_the_expression(text: str) -> None:
    parse(text)
    variables = declare_variables([text], STEPS.values())
    structured = st_of(text, STEPS, variables)
    if structured:
        again = translate(structured, Scope({"WAIT": "Wait"}, variables, spelling={})).text
        assert st_of(again, STEPS, variables) == structured


def test_words_of_the_languages_are_not_names() -> None:
    assert [is_plain_name(name) for name in ("Weld_1", "IF", "t", "1a", "a b", "", "ä")] == [True] + [False] * 6
