"""A text is its English form with values, and the same in a language that has a catalogue."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.errors import Refused
from edge.foundation.text import Text, as_text, join_texts, with_nearest


@pytest.mark.parametrize(
    ("text", "english"),
    [
        (Text("the body is not JSON"), "the body is not JSON"),
        (Text("braces {stay} where no value is"), "braces {stay} where no value is"),
        (Text.of("no job {job!r}", job="J{1}"), "no job 'J{1}'"),
        (Text.of("for {seconds:g} s", seconds=2.0), "for 2 s"),
        (Text.of("it failed: {reason}", reason=Refused("x", Text.of("no {what}", what="tool"))), "it failed: no tool"),
        (Text.of("it failed: {reason}", reason=OSError("disk")), "it failed: disk"),
        (join_texts("; ", ["one {x}", Text.of("two {x}", x=2)]), "one {x}; two 2"),
        (join_texts("; ", []), ""),
    ],
)
def test_text_is_english(text: Text, english: str) -> None:
    assert str(text) == english
    assert str(msgspec.msgpack.decode(msgspec.msgpack.encode(text), type=Text)) == english


@given(st.text(), st.one_of(st.text(), st.integers(), st.floats(allow_nan=False), st.booleans(), st.none()))
def test_stored_text_is_the_same(literal: str, value: object) -> None:
    text = Text.of("{literal!r} is {value}, {inner}", literal=literal, value=value, inner=as_text(literal))
    stored = msgspec.msgpack.encode(text)
    assert msgspec.msgpack.decode(stored, type=Text) == text
    assert msgspec.msgpack.decode(stored, type=str | Text) == text
    assert str(text) == f"{literal!r} is {value}, {literal}"


def test_word_that_was_probably_meant_is_named_for_each_language() -> None:
    fault = with_nearest(Text("there is no such key"), "listn", ("listen", "url"))
    assert str(fault) == "there is no such key; did you mean listen?"
    assert "listen" in fault.in_language("de")
    assert with_nearest(Text("there is no such key"), "x", ("listen",)) == Text("there is no such key")
