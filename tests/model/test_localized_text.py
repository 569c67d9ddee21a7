"""Texts of authors: plain or by language, chosen for a reader; names as words."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.model.isa95 import LocalizedText
from edge.model.localized_text import (
    MAX_CHARACTERS,
    MAX_LANGUAGES,
    AuthorText,
    choose_text,
    localized,
    read_author_text,
    title_of,
    words_of,
)

_TEXTS = {"en": "Seat the cable", "de": "Kabel einlegen", "fr-CA": "Poser le câble"}


@pytest.mark.parametrize(
    ("languages", "text"),
    [
        (("de",), "Kabel einlegen"),
        (("de-AT", "en"), "Kabel einlegen"),
        (("DE",), "Kabel einlegen"),
        (("fr",), "Poser le câble"),
        (("fr-FR",), "Poser le câble"),
        (("es", "de"), "Kabel einlegen"),
        (("es",), "Seat the cable"),
        ((), "Seat the cable"),
    ],
)
def test_reader_gets_the_first_language_that_exists(languages: tuple[str, ...], text: str) -> None:
    assert choose_text(_TEXTS, languages) == text


def test_reader_gets_the_first_text_without_own_language_and_english() -> None:
    assert choose_text({"de": "Kabel", "it": "Cavo"}, ("es",)) == "Kabel"


def test_plain_text_is_the_same_in_each_language() -> None:
    assert choose_text("Seat", ("de",)) == "Seat"
    assert localized("Seat", ("de",)) == LocalizedText(text="Seat")
    assert localized(_TEXTS, ("fr",)) == LocalizedText(text="Poser le câble", locale="fr-CA")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("", "must be a text of 1"),
        ("x" * (MAX_CHARACTERS + 1), "must be a text of 1"),
        (5, "must be a text of 1"),
        (None, "must be a text of 1"),
        (["de"], "must be a text of 1"),
        ({}, "one to 20 languages"),
        ({"de": ""}, "must be a text of 1"),
        ({"german language": "Kabel"}, "not 'german language'"),
        ({f"a{chr(97 + n)}": "x" for n in range(MAX_LANGUAGES + 1)}, "one to 20 languages"),
    ],
)
def test_text_of_another_form_is_refused_with_its_form(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_author_text(value)


@given(
    st.one_of(
        st.text(max_size=3),
        st.integers(),
        st.dictionaries(st.sampled_from(["de", "en-GB", "x", "d e", "", "de-"]), st.text(max_size=2), max_size=3),
    )
)
def test_reader_and_schema_accept_the_same(value: object) -> None:
    try:
        expected = read_author_text(value)
    except ValueError:
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(value, AuthorText)
    else:
        assert msgspec.convert(value, AuthorText) == expected == value


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("TightenBolt1", "Tighten bolt 1"),
        ("tighten", "Tighten"),
        ("tighten_left", "Tighten left"),
        ("scan-vin", "Scan vin"),
        ("readVIN2", "Read VIN 2"),
        ("OCRRead", "OCR read"),
        ("M8Bolt", "M8 bolt"),
        ("Bolt10Left", "Bolt 10 left"),
        ("S1", "S1"),
        ("Fit the Axle", "Fit the Axle"),
        ("PrüfenÖl", "Prüfen öl"),
        ("Done", "Done"),
        ("__", "__"),
        ("", ""),
    ],
)
def test_name_is_split_into_words(name: str, words: str) -> None:
    assert words_of(name) == words


@given(st.text(max_size=30))
def test_words_of_a_name_have_its_letters_in_order(name: str) -> None:
    assert [char for char in words_of(name).casefold() if char not in "_-. "] == [
        char for char in name.casefold() if char not in "_-. "
    ]


def test_title_is_the_own_one_or_the_words_of_the_name() -> None:
    assert title_of("SeatCable", _TEXTS, ("de",)) == "Kabel einlegen"
    assert title_of("SeatCable", None, ("de",)) == "Seat cable"
