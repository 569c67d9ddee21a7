"""The id of a command contains everything that routes its answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.sfc.identifiers import (
    AssociationKey,
    CommandKey,
    command_id,
    parse_association_key,
    parse_command_id,
    quote,
    unquote,
)


def test_command_id_is_formatted_as_a_path() -> None:
    assert command_id("JOB-1", "r1", "tighten", 2) == "JOB-1/r1/tighten/2"
    assert command_id("JOB-1", "r1", "clamp", 1, reset=True) == "JOB-1/r1/clamp/1/reset"
    assert command_id("a/b", "r", "größe %", 1) == "a%2Fb/r/gr%C3%B6%C3%9Fe%20%25/1"


@given(job=st.text(), run=st.text(), action=st.text(), attempt=st.integers(1, 999_999_999), reset=st.booleans())
def test_every_id_is_parsed_as_it_was_written(*, job: str, run: str, action: str, attempt: int, reset: bool) -> None:
    text = command_id(job, run, action, attempt, reset=reset)
    assert parse_command_id(text) == CommandKey(job, run, action, attempt, reset=reset)


@given(st.text())
def test_quoted_text_has_no_separator_and_unquotes_unchanged(text: str) -> None:
    assert not set("/@#:") & set(quote(text))
    assert unquote(quote(text)) == text


@pytest.mark.parametrize(
    "text", ["", "a", "a/b/c", "a/b/c/x", "a/b/c/-1", "a/b/c/1/stop", "a/b/c/1/reset/2", "a/b/c/1e3"]
)
def test_invalid_command_id_is_parsed_as_none(text: str) -> None:
    assert parse_command_id(text) is None


@given(st.text())
def test_any_text_is_parsed_without_an_error(text: str) -> None:
    parse_command_id(text)
    unquote(text)


def test_invalid_escapes_are_kept_or_replaced() -> None:
    assert unquote("%FF%zz%") == "\ufffd%zz%"


@pytest.mark.parametrize(
    ("key", "text"),
    [
        (AssociationKey("a", "A"), "a@A"),
        (AssociationKey("a", "A", 2), "a@A#2"),
        (AssociationKey("a", "A", attempt=3), "a@A/3"),
        (AssociationKey("a", "A", 2, 3), "a@A#2/3"),
        (AssociationKey("a/b@c", "größe #1"), "a%2Fb%40c@gr%C3%B6%C3%9Fe%20%231"),
    ],
)
def test_key_is_stored_as_escaped_text(key: AssociationKey, text: str) -> None:
    assert str(key) == f"{key}" == text
    assert parse_association_key(text) == key


@given(st.text(), st.text(), st.integers(1, 50), st.integers(0, 50))
def test_every_key_is_parsed_from_its_text(action: str, step: str, number: int, attempt: int) -> None:
    key = AssociationKey(action, step, number, attempt)
    assert parse_association_key(str(key)) == key


@pytest.mark.parametrize("text", ["", "a", "a@b@c", "a@b#x", "a@b/", "a@b/1/2", "a@b/1#2", "action:a@b/x"])
def test_invalid_key_text_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a key of an association"):
        parse_association_key(text)


def test_earlier_attempt_keeps_the_key_of_the_latest() -> None:
    key = AssociationKey("a", "A", 2)
    left = key.left_behind(4)
    assert (left.is_left_behind, key.is_left_behind) == (True, False)
    assert left.latest == key.latest == key
    assert left > key
