"""Messages reach each reader in the first language that has their texts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.access.localization import KEY, known_languages, language_of_locale, localize, parse_languages

TEXTS = {"Cell": "Cell 2", "de:Cell": "Zelle 2", "Why": "{$Cell} is rebuilt", "de:Why": "Umbau von {$Cell}"}


@pytest.mark.parametrize(
    ("message", "languages", "expected"),
    [
        ("no placeholder", (), "no placeholder"),
        ("{$Why}, sorry", (), "Cell 2 is rebuilt, sorry"),
        ("{$Why}", ("de",), "Umbau von Zelle 2"),
        ("{$Why}", ("de-AT",), "Umbau von Zelle 2"),
        ("{$Why}", ("fr", "DE-ch"), "Umbau von Zelle 2"),
        ("{$Why}", ("fr",), "Cell 2 is rebuilt"),
        ("{$Nobody} wrote it", ("de",), "Nobody wrote it"),
        ("{Cell} {$} {$ Cell}", (), "{Cell} {$} {$ Cell}"),
        ("{$MaintenanceMessage}", ("de",), "Wartung: es wird keine Arbeit begonnen."),
        ("{$MaintenanceMessage}", ("en", "de"), "Maintenance is in progress: no work is started."),
    ],
)
def test_placeholders_are_replaced_in_the_language_of_the_reader(
    message: str, languages: tuple[str, ...], expected: str
) -> None:
    assert localize(message, TEXTS, languages) == expected


def test_texts_of_a_site_replace_those_of_the_product() -> None:
    texts = {"MaintenanceMessage": "closed", "de:MaintenanceMessage": "zu"}
    assert [localize("{$MaintenanceMessage}", texts, (text,)) for text in ("en", "de")] == ["closed", "zu"]


def test_self_referring_text_is_bounded() -> None:
    assert len(localize("{$Loop}", {"Loop": "{$Loop}{$Loop}"}, ())) < 1000


@given(st.text(), st.dictionaries(st.text(), st.text()), st.lists(st.text()))
def test_any_message_and_table_raise_no_error(message: str, texts: dict[str, str], languages: list[str]) -> None:
    assert isinstance(localize(message, texts, languages), str)


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("", ()),
        ("de", ("de",)),
        ("fr, de-AT;q=0.8, en;q=0.9", ("fr", "en", "de-AT")),
        ("de;q=0, en", ("en",)),
        ("*, <script>, de;q=x, en", ("en",)),
        (",".join(["de"] * 10_000), ("de",) * 10),
    ],
)
def test_languages_are_sorted_by_their_weight(header: str, expected: tuple[str, ...]) -> None:
    assert parse_languages(header) == expected


@pytest.mark.parametrize(
    ("locale", "expected"),
    [("de_AT.UTF-8", ("de-AT",)), ("de_DE@euro", ("de-DE",)), ("C", ()), ("C.UTF-8", ()), ("POSIX", ()), ("", ())],
)
def test_language_is_read_from_the_system_locale(locale: str, expected: tuple[str, ...]) -> None:
    assert language_of_locale(locale) == expected


def test_languages_of_all_texts_are_listed() -> None:
    assert known_languages(("it:Cell", "Cell"))[0] == "en"
    assert {"de", "fr", "it"} <= set(known_languages(("it:Cell",)))


@pytest.mark.parametrize(
    ("name", "is_one"), [("Cell", True), ("de:Cell", True), ("de-AT:Cell", True), (":Cell", False), ("de:", False)]
)
def test_text_name_must_match_the_pattern(name: str, *, is_one: bool) -> None:
    assert bool(KEY.fullmatch(name)) is is_one
