"""Reads texts that an author wrote for people, plain or by language, and splits names into words.

Examples: {"title": "Seat the cable"}, {"title": {"en": "Seat the cable", "de": "Kabel einlegen"}}
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final, TypeAlias

from msgspec import Meta, UnsetType

from edge.model.isa95 import LocalizedText

MAX_CHARACTERS: Final = 1_000
MAX_LANGUAGES: Final = 20
LANGUAGE: Final = r"^[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8})*$"
"""What a language is called (BCP 47): `de`, `fr-CA`."""

_PlainText: TypeAlias = Annotated[str, Meta(min_length=1, max_length=MAX_CHARACTERS)]
AuthorText: TypeAlias = (
    _PlainText
    | Annotated[dict[Annotated[str, Meta(pattern=LANGUAGE)], _PlainText], Meta(min_length=1, max_length=MAX_LANGUAGES)]
)
"""A plain text, or texts by their language; never empty."""

_ENGLISH: Final = "en"
_LANGUAGE: Final = re.compile(LANGUAGE)
_SEPARATORS: Final = frozenset("_-. ")


def read_author_text(value: object) -> AuthorText:
    """Return a value of JSON as a text of an author.

    Raises ValueError for another form; the message continues a sentence: "must be …".
    """
    if isinstance(value, Mapping):
        if not 1 <= len(value) <= MAX_LANGUAGES:
            raise ValueError(f"must have a text for one to {MAX_LANGUAGES} languages")
        if unknown := [name for name in value if not isinstance(name, str) or not _LANGUAGE.fullmatch(name)]:
            raise ValueError(f"must have languages such as 'de' as keys, not {unknown[0]!r}")
        return {language: _read_plain(text) for language, text in value.items()}
    return _read_plain(value)


def choose_text(text: AuthorText, languages: Sequence[str]) -> str:
    """Return a text in the first of a reader's languages that it has; else in English, else its first one.

    A region that is missing stands for its language, and the other way round: `de-AT`, `de`, `de-DE`.
    """
    return text if isinstance(text, str) else text[_language_of(text, languages)]


def localized(text: AuthorText, languages: Sequence[str]) -> LocalizedText:
    """Return a text for a reader with the language that was chosen (OPC 10000-3, 8.5); a plain text has none."""
    if isinstance(text, str):
        return LocalizedText(text=text)
    language = _language_of(text, languages)
    return LocalizedText(text=text[language], locale=language)


def title_of(name: str, title: AuthorText | UnsetType | None, languages: Sequence[str]) -> str:
    """Return the title of a thing for a reader: its own one, or its name as words."""
    return choose_text(title, languages) if title else words_of(name)


def words_of(name: str) -> str:
    """Return a name as words: `TightenBolt1` is "Tighten bolt 1", `read_VIN` is "Read VIN".

    A name with a space is written for people already.
    """
    if " " in name:
        return name
    words = [word if word.isupper() else word[0].lower() + word[1:] for word in _split(name)]
    text = " ".join(words)
    return text[:1].upper() + text[1:] if text else name


def _read_plain(value: object) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= MAX_CHARACTERS:
        raise ValueError(f"must be a text of 1 to {MAX_CHARACTERS} characters, or such texts by their language")
    return value


def _language_of(text: Mapping[str, str], languages: Sequence[str]) -> str:
    spelling = {language.lower(): language for language in text}
    for language in (*languages, _ENGLISH):
        wanted = language.lower()
        parts = wanted.split("-")
        exact = ("-".join(parts[:length]) for length in range(len(parts), 0, -1))
        regional = (language for language in spelling if language.partition("-")[0] == parts[0])
        for candidate in (*exact, *regional):
            if candidate in spelling:
                return spelling[candidate]
    return next(iter(text))


def _split(name: str) -> Iterator[str]:
    word = ""
    for place, char in enumerate(name):
        is_separator = char in _SEPARATORS
        if word and (is_separator or _starts_word(word, char, name[place + 1 : place + 2])):
            yield word
            word = ""
        if not is_separator:
            word += char
    if word:
        yield word


def _starts_word(word: str, char: str, following: str) -> bool:
    """Return whether a character starts a word: an upper letter after a lower one, a figure after a longer word."""
    before = word[-1]
    if char.isdigit():
        # "M8" is one word.
        return not before.isdigit() and len(word) > 1
    if before.isdigit():
        return char.isupper()
    return char.isupper() and (before.islower() or following.islower())
