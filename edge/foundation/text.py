"""Texts for people: an id with values, and a catalogue for each language.

The id of a text is its English form, with a name in braces where a value stands. A catalogue has the same text in
another language; it is a file `edge/texts/LANGUAGE.toml`, and a new language is one new file.
"""

import difflib
import functools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

ENGLISH: Final = "en"


class Text(Struct, frozen=True, array_like=True):
    """A text as its id and the values by their names; a value may itself be a text. `str` of it is English.

    A text without values is its id as it stands: braces in it have no meaning.
    """

    id: str
    values: Mapping[str, "str | int | float | bool | Text | None"] = {}

    @classmethod
    def of(cls, id_: str, /, **values: object) -> "Text":
        """Return a text; an expected error among the values stands for its own text.

        Example: `Text.of("the job {job!r} has ended", job=job_id)`.
        """
        return cls(id_, {name: _value(value) for name, value in values.items()})

    def __str__(self) -> str:
        return self.in_language(ENGLISH)

    def __hash__(self) -> int:
        return hash(self.id)

    def in_language(self, language: str) -> str:
        """Return the text in a language; in English where the catalogue of the language does not have it."""
        template = _catalogue(language).get(self.id, self.id)
        if not self.values:
            return template
        values = {
            name: value.in_language(language) if isinstance(value, Text) else value
            for name, value in self.values.items()
        }
        return template.format_map(values)


def _value(value: object) -> str | int | float | bool | Text | None:
    match value:
        case str() | int() | float() | Text() | None:
            return value
        case Exception():
            stated = getattr(value, "text", None)
            return stated if isinstance(stated, Text) else str(value)
        case _:
            return str(value)


def as_text(stated: str | Text) -> Text:
    """Return a text; a string is the id of one without values."""
    return stated if isinstance(stated, Text) else Text(stated)


def stated_in(stated: str | Text, language: str) -> str:
    """Return what is stated in a language; a string without translation as it stands."""
    return as_text(stated).in_language(language)


def join_texts(separator: str, texts: Iterable[str | Text]) -> Text:
    """Return texts one after the other, with a separator between them."""
    parts = tuple(map(as_text, texts))
    if len(parts) == 1:
        return parts[0]
    names = [f"part{number}" for number in range(len(parts))]
    return Text(separator.join(f"{{{name}}}" for name in names), dict(zip(names, parts, strict=True)))


def with_nearest(fault: Text, word: str, known: Iterable[str]) -> Text:
    """Return the fault of an unknown word, with the known one that was probably meant."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return Text.of("{fault}; did you mean {near}?", fault=fault, near=close[0]) if close else fault


@functools.cache
def languages() -> tuple[str, ...]:
    """Return the languages that have a catalogue, English first."""
    names = sorted(file.stem for file in _FOLDER.glob("*.toml"))
    return (ENGLISH, *(name for name in names if name != ENGLISH))


def language_for(preferred: Sequence[str]) -> str:
    """Return the first language of a reader that has a catalogue; English without one."""
    known = (language.partition("-")[0].lower() for language in preferred)
    return next((name for name in known if name in languages()), ENGLISH)


def in_every_language(text: Text) -> Mapping[str, str]:
    """Return a text in each language that has a catalogue."""
    return {language: text.in_language(language) for language in languages()}


def labels(language: str) -> Mapping[str, str]:
    """Return the labels of the pages in a language, by their keys."""
    return _file(language)["labels"]


def _catalogue(language: str) -> Mapping[str, str]:
    return {} if language == ENGLISH else _file(language)["texts"]


_FOLDER: Final = Path(__file__).parents[1] / "texts"


@functools.cache
def _file(language: str) -> Mapping[str, Mapping[str, str]]:
    return tomllib.loads((_FOLDER / f"{language}.toml").read_text(encoding="utf-8"))
