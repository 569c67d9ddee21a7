"""JSON from a file is validated as strictly as from a message; errors contain the position."""

import pytest

from edge.foundation.errors import Refused
from edge.foundation.text import Text, languages
from edge.model.json_value import ExactValue, exact_value, plain_value, read_json_text


def test_byte_order_mark_is_ignored() -> None:
    assert read_json_text(b'\xef\xbb\xbf{"steps": []}') == {"steps": []}


FAULTS = (
    *("{", "[1,", '{"a" 1}', "[1 2]", "1 2", '"a', '"\x01"', r'"\d"', r'"\u12"', '{"a": 1,}', "[1,]"),
    "[" * 100_000,
)


@pytest.mark.parametrize("text", FAULTS, ids=lambda text: text[:9].encode().hex())
def test_syntax_fault_of_json_is_stated_in_every_language(text: str) -> None:
    """The reason of the decoder was English in each language."""
    with pytest.raises(Refused) as caught:
        read_json_text(text.encode())
    reason = caught.value.text.values["reason"]
    assert isinstance(reason, Text)
    inner = reason.values.get("reason", reason)
    assert isinstance(inner, Text)
    assert len({inner.in_language(language) for language in languages()}) == len(languages())


def test_syntax_fault_of_json_has_its_place_in_german() -> None:
    with pytest.raises(Refused) as caught:
        read_json_text(b'{\n "steps": [,]}')
    assert caught.value.text.in_language("de").endswith("hier fehlt ein Wert: Zeile 2, Spalte 12 (Zeichen 13)")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not JSON: Expecting value: line 1 column 1"),
        (b'{\n "steps": [,]}', "line 2 column 12"),
        (b"\xff", "not JSON"),
        (b"[" * 100_000, "not JSON: it is nested too deeply"),
        (b"9" * 5000, "not JSON"),
        (b"[NaN]", "malformed"),
        (b"1e400", "out of range"),
        (rb'"\ud800"', "application/json"),
        (b"[" * 100 + b"]" * 100, "nested"),
    ],
)
def test_text_that_a_gateway_would_refuse_is_refused(text: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        read_json_text(text)


@pytest.mark.parametrize(
    "value",
    [
        None,
        7,
        "UaType",
        [],
        {},
        {"Value": 7},
        {"UaType": True, "Value": 7},
        {"UaType": 6},
        {"UaType": 6, "Value": 7, "Unit": 1},
    ],
    ids=str,
)
def test_other_values_are_unchanged(value: object) -> None:
    assert exact_value(value) is None
    assert plain_value(value) == value


def test_exact_value_is_encoded_in_the_form_it_was_decoded_from() -> None:
    form = {"UaType": 8, "Value": ["1", "2"], "Dimensions": [1, 2]}
    exact = exact_value(form)
    assert exact == ExactValue(8, ["1", "2"], (1, 2))
    assert exact.as_json() == form


def test_long_integers_become_numbers_and_other_text_stays_text() -> None:
    assert plain_value({"UaType": 8, "Value": ["-9007199254740993", "seven"]}) == [-9007199254740993, "seven"]


@pytest.mark.parametrize("text", ["--5", "-", "", "5" * 5000])
def test_invalid_integer_text_stays_text(text: str) -> None:
    assert plain_value({"UaType": 9, "Value": text}) == text
