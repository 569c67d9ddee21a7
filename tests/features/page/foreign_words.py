"""Reads the texts that a page shows, and finds the words in them that belong to English, not to the page's language.

English words are those of the ids in the catalogue, and of the English labels, that some translation does not keep: a
name such as `Redis` stands in all of them. A word that a translation uses where its id does not is a word of the other
language, too, such as `in` in German.
"""

import json
import re
from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from typing import Any, Final

from tests.architecture.texts import catalogue

SHOWN_ATTRIBUTES: Final = frozenset(
    {"title", "alt", "aria-label", "placeholder"}
    | {
        f"data-{name}"
        for name in (
            *("again", "any", "ask", "attempt", "back", "bad", "badge", "clear", "decision", "discarded", "done"),
            *("drop", "failed", "from", "gone", "good", "hide", "hold", "label", "large", "limit", "no", "no-name"),
            *("no-value", "none", "not", "now", "of", "over", "passed", "pin", "redo", "released", "said", "second"),
            *("then", "title", "truncated", "undo", "unsaved", "waits", "yes"),
        )
    }
)
"""Attributes with text for people: those of `data-` are texts that a script shows."""
SHOWN_LISTS: Final = frozenset({"data-ends", "data-texts", "data-verdicts"})
"""Attributes with JSON whose values are texts for people."""
NOT_READ: Final = frozenset({"script", "style", "code", "pre", "noscript"})
"""Elements without text for people: programs, conditions of recipes and commands are the same in each language."""
SHARED: Final = {
    "de": "alarm broker host name offline only optional parallel port sentinels start status system test transition",
    "fr": "messages only primary second sentinels sessions versions",
}
"""Words that are the same in English and in the other language."""


_NOT_WORDS: Final = re.compile(
    r"""
    \{[^}]*\}  # the place of a value
    | `[^`]*`  # a command or setting
    | \[[a-z_.<>]+\](?:[ ][a-z_]+)?(?:[ ]=[ ]\w+)?  # a section, or a setting in it
    | \b(?:edge|apt)(?:[ ][a-z-]+)+  # a command
    | \b[A-Z]{2,}\b  # a sign such as MES
    | \S*[/_=.:@\d]\S+  # an identifier, an address, a file
    """,
    re.VERBOSE,
)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.texts: list[str] = []
        self._closed: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in NOT_READ:
            self._closed.append(tag)
        # The example in a field whose spelling is not checked is a formula or a name.
        shown = SHOWN_ATTRIBUTES - ({"placeholder"} if ("spellcheck", "false") in attrs else set())
        self.texts += [value for name, value in attrs if name in shown and value]
        for name, value in attrs:
            if name in SHOWN_LISTS and value:
                self.texts += _texts_in(json.loads(value))

    def handle_endtag(self, tag: str) -> None:
        if self._closed and self._closed[-1] == tag:
            self._closed.pop()

    def handle_data(self, data: str) -> None:
        if not self._closed and data.strip():
            self.texts.append(data.strip())


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _texts_in(member)
    else:
        yield str(value)


def texts_of(document: str) -> list[str]:
    """Return every text of an HTML page, or of an SVG picture, that a person reads."""
    reader = _Reader()
    reader.feed(document)
    return reader.texts


def english_words(text: str, language: str) -> list[str]:
    """Return the words of a text that belong to English, not to the language."""
    return [word for word in _words(text) if word in _english_only(language)]


@cache
def _english_only(language: str) -> frozenset[str]:
    english: set[str] = set()
    foreign: set[str] = set(SHARED[language].split())
    for id_, translated in _pairs(language):
        words, others = set(_words(id_)), set(_words(translated))
        english |= words - others
        foreign |= others - words
    return frozenset(english - foreign)


def _pairs(language: str) -> Iterator[tuple[str, str]]:
    yield from catalogue(language)["texts"].items()
    for key, label in catalogue("en")["labels"].items():
        yield label, catalogue(language)["labels"][key]


def _words(text: str) -> Iterator[str]:
    """Yield the words of a text in lower case, without identifiers, signs, commands, addresses and places of values."""
    plain = _NOT_WORDS.sub(" ", text)
    yield from (word.casefold() for word in re.findall(r"[^\W\d_]{2,}", plain))
