"""The grammar of conditions: what parses, and what is said of what does not."""

from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from edge.sfc.grammar import Compare, ConditionSyntaxError, Junction, Literal, Name, Not, parse


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
def test_literals(text: str, value: object) -> None:
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
def test_names(text: str, path: tuple[object, ...]) -> None:
    assert parse(text) == Name(path, 0, len(text))  # type: ignore[arg-type]


def test_or_binds_weaker_than_and_and_and_weaker_than_not() -> None:
    node = parse("a or not b and c")
    assert isinstance(node, Junction)
    assert node.word == "or"
    right = node.operands[1]
    assert isinstance(right, Junction)
    assert right.word == "and"
    assert isinstance(right.operands[0], Not)


def test_the_other_spellings_mean_the_same() -> None:
    assert str(parse("! a && b || c <> 1")).replace("start", "").count("Junction") == 2
    assert isinstance(parse("a <> 1"), Compare)
    assert parse("a <> 1") == parse("a != 1")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the condition is empty"),
        ("   ", "the condition is empty"),
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
        ("x" * 1001, "a condition has at most 1000 characters, this one has 1001"),
        ("(" * 33 + "a" + ")" * 33, "nested deeper than 32 (at character 33)"),
        ("not " * 33 + "a", "nested deeper than 32 (at character 129)"),
    ],
)
def test_what_does_not_parse_is_told_with_its_position(text: str, reason: str) -> None:
    with pytest.raises(ConditionSyntaxError) as error:
        parse(text)
    assert reason in str(error.value)


def test_a_single_equals_sign_is_told_what_to_write() -> None:
    with pytest.raises(ConditionSyntaxError, match="write '=='"):
        parse("a = 1")


def test_depth_32_and_1000_characters_are_allowed() -> None:
    parse("(" * 32 + "a" + ")" * 32)
    parse("a" * 1000)


@given(st.text(max_size=200) | st.text(alphabet="ab.()[]'\"<>=!&|01sT#- notrue", max_size=120))
@example("T#")
@example('a["\\')
def test_any_text_parses_or_is_refused(text: str) -> None:
    with suppress(ConditionSyntaxError):
        parse(text)
