"""Structured Text is split into tokens; its literals become values of expressions."""

from decimal import Decimal

import pytest

from edge.features.recipes.plcopen.st_tokens import StError, literal_of, read_duration, tokens_of


def value(text: str) -> str:
    (token,) = tokens_of(text)
    literal = literal_of(token)
    assert literal is not None
    return f"{literal.kind}: {literal.text}"


def test_comments_and_pragmas_are_left_out() -> None:
    text = "a (* one (* two *) *) AND {attribute 'x'} b // three\n OR c /* four */"
    assert [token.text for token in tokens_of(text)] == ["a", "AND", "b", "OR", "c"]


@pytest.mark.parametrize(
    ("text", "literal"),
    [
        ("TRUE", "BOOL: true"),
        ("BOOL#0", "BOOL: false"),
        ("1_000", "INT: 1000"),
        ("16#FF", "INT: 255"),
        ("2#1010_0001", "INT: 161"),
        ("INT#-5", "INT: -5"),
        ("UINT#16#10", "INT: 16"),
        ("1.5", "REAL: 1.5"),
        ("REAL#2", "REAL: 2"),
        ("3E2", "REAL: 300.0"),
        ("T#1m30s", "TIME: 90s"),
        ("time#1d_2h", "TIME: 93600s"),
        ("LTIME#1.5ms", "TIME: 0.0015s"),
        ("T#-2s", "TIME: -2s"),
        ("'it$'s $$5$L'", 'STRING: "it\'s $5\n"'),
        ('"a$00e4"', 'STRING: "aä"'),
        ("STRING#'a\\b'", 'STRING: "a\\\\b"'),
    ],
)
def test_a_literal_becomes_a_value(text: str, literal: str) -> None:
    assert value(text) == literal


@pytest.mark.parametrize("text", ["D#2026", "2#2", "9" * 30, "9" * 5000, "1e999", "T#5", "T#", "'a$Q'", "Colour#red"])
def test_a_value_without_form_is_refused(text: str) -> None:
    with pytest.raises(StError):
        value(text)


def test_a_comment_without_end_is_refused_with_its_place() -> None:
    with pytest.raises(StError, match="the comment at character 3 has no end"):
        tokens_of("a (* b (* c *)")


def test_a_duration_is_read_in_seconds() -> None:
    assert read_duration(" T#1h1m1s1ms1us1ns ") == Decimal("3661.001001001")
    assert [read_duration(text) for text in ("", "5s", "T#5", "T#s", "INT#5", "T#5s5")] == [None] * 6
