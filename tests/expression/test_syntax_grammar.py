"""The grammar of expressions: accepted text, and the errors of invalid text."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge.expression.syntax import (
    Arithmetic,
    Call,
    Compare,
    ExpressionSyntaxError,
    Junction,
    Literal,
    Name,
    Negative,
    Not,
    parse,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2s", 2),
        ("500ms", 0.5),
        ("1.5min", 90),
        ("2h", 7200),
        ("T#2s", 2),
        ("t#1m30s", 90),
        ("T#1d2h3m4s5ms", 93784.005),
        ("0.1s", 0.1),
    ],
)
def test_a_time_is_a_number_of_seconds(text: str, seconds: float) -> None:
    assert parse(text) == Literal(seconds, 0, len(text))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("-7", -7),
        ("2.5", 2.5),
        ("1e3", 1000.0),
        ("'a b'", "a b"),
        ('"a\\"b"', 'a"b'),
        ("always", True),
        ("never", False),
    ],
)
def test_literal_is_parsed_to_its_value(text: str, value: object) -> None:
    assert parse(text) == Literal(value, 0, len(text))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("torque_ok", ("torque_ok",)),
        ("steps.A.T", ("steps", "A", "T")),
        ('steps["a b"].X', ("steps", "a b", "X")),
        ("actions.a.result[0].not", ("actions", "a", "result", 0, "not")),
        ("größe", ("größe",)),
    ],
)
def test_name_is_parsed_to_its_path(text: str, path: tuple[object, ...]) -> None:
    assert parse(text) == Name(path, 0, len(text))  # type: ignore[arg-type]


def test_or_binds_weaker_than_and_which_binds_weaker_than_not() -> None:
    node = parse("a or not b and c")
    assert isinstance(node, Junction)
    assert node.word == "or"
    right = node.operands[1]
    assert isinstance(right, Junction)
    assert right.word == "and"
    assert isinstance(right.operands[0], Not)


def test_alternative_operator_spellings_are_equivalent() -> None:
    assert str(parse("! a && b || c <> 1")).replace("start", "").count("Junction") == 2
    assert isinstance(parse("a <> 1"), Compare)
    assert parse("a <> 1") == parse("a != 1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the expression is empty"),
        ("   ", "the expression is empty"),
        ("a ==", "expected a value at the end (at character 5)"),
        ("a and", "expected a value at the end (at character 6)"),
        ("(a", "expected ')' at the end (at character 3)"),
        ("a)", "')' is not expected here (at character 2)"),
        ("a b", "'b' is not expected here (at character 3)"),
        ("a < b < c", "'<' is not expected here (at character 7)"),
        ("a.1", "expected a name after '.' (at character 3)"),
        ("a.(b)", "expected a name after '.' (at character 3)"),
        ("a[b]", "expected a whole number or a string in brackets (at character 3)"),
        ("a[-1]", "expected a whole number or a string in brackets (at character 3)"),
        ("a[1", "expected ']' at the end (at character 4)"),
        ("5 parsecs", "'parsecs' is not expected here (at character 3)"),
        ("5parsecs", "cannot read '5parsecs' (at character 1)"),
        ("'open", 'cannot read "\'" (at character 1)'),
        ("a; b", "cannot read ';' (at character 2)"),
        ("and", "expected a value before 'and' (at character 1)"),
        ("1e999", "the number is too large (at character 1)"),
        ("a ** 2", "there is no power operator (at character 3)"),
        ("a * * 2", "expected a value before '*' (at character 5)"),
        ("a +", "expected a value at the end (at character 4)"),
        ("- and", "expected a value before 'and' (at character 3)"),
        ("sqrt(4)", "unknown function 'sqrt'; there are min, max, abs, round, coalesce, if (at character 1)"),
        ("min(1)", "min() takes 2 to 20 arguments, not 1 (at character 1)"),
        ("abs()", "abs() takes 1 arguments, not 0 (at character 1)"),
        ("if(a, 1)", "if() takes 3 arguments, not 2 (at character 1)"),
        ("max(1, 2", "expected ')' at the end (at character 9)"),
        ("max(1,)", "expected a value before ')' (at character 7)"),
        ("round(x, 16)", "round() takes 0 to 15 decimal places, as a literal (at character 10)"),
        ("round(x, y)", "round() takes 0 to 15 decimal places, as a literal (at character 10)"),
        ("-" * 33 + "a", "nested deeper than 32 (at character 33)"),
        ("abs(" * 33 + "a" + ")" * 33, "nested deeper than 32 (at character 132)"),
        ("x" * 1001, "an expression has at most 1000 characters, this one has 1001"),
        ("(" * 33 + "a" + ")" * 33, "nested deeper than 32 (at character 33)"),
        ("not " * 33 + "a", "nested deeper than 32 (at character 129)"),
    ],
)
def test_parse_error_names_reason_and_position(text: str, reason: str) -> None:
    with pytest.raises(ExpressionSyntaxError) as error:
        parse(text)
    assert reason in str(error.value)


def test_single_equals_sign_is_refused_with_advice() -> None:
    with pytest.raises(ExpressionSyntaxError, match="write '=='"):
        parse("a = 1")


def test_depth_32_and_1000_characters_are_allowed() -> None:
    parse("(" * 32 + "a" + ")" * 32)
    parse("a" * 1000)


def test_product_binds_stronger_than_sum_and_sum_than_comparison() -> None:
    node = parse("a + b * c > 2 - -d")
    assert isinstance(node, Compare)
    match node.left, node.right:
        case Arithmetic(first=Name(), rest=(("+", Arithmetic(rest=(("*", Name()),))),)), right:
            assert isinstance(right, Arithmetic)
            assert isinstance(right.rest[0][1], Negative)
        case other:
            pytest.fail(str(other))


def test_long_sum_is_one_flat_node() -> None:
    node = parse("1" + "+1" * 400)
    assert isinstance(node, Arithmetic)
    assert len(node.rest) == 400


def test_function_name_without_parenthesis_is_an_ordinary_name() -> None:
    assert parse("min") == Name(("min",), 0, 3)
    assert isinstance(parse("if(a, min, 2)"), Call)


def test_text_of_a_compound_includes_its_parentheses() -> None:
    text = "(a + b) * 2 > (c)"
    node = parse(text)
    assert isinstance(node, Compare)
    assert text[node.start : node.end] == text
    assert text[node.left.start : node.left.end] == "(a + b) * 2"


@given(st.text(max_size=200) | st.text(alphabet="ab.()[]'\"<>=!&|01sT#- notrue+*/%,min", max_size=120))
@example("T#")
@example('a["\\')
def test_any_text_parses_or_is_refused(text: str) -> None:
    with suppress(ExpressionSyntaxError):
        parse(text)
