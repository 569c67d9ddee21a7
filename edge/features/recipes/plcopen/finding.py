"""What is said about a file of a PLC: a text and its place."""

from collections.abc import Iterable
from typing import Any, Final

from msgspec import Struct

from edge.foundation.text import Text

MAX_NAME: Final = 256
"""Characters of the longest name that is taken from a file."""
_SHOWN: Final = 60


def cut(text: str) -> str:
    """Return a text of a file as a message quotes it: cut off, so that many messages stay small."""
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


class PlcPlace(Struct, frozen=True):
    """A place in a file: its line, counted from 1, and the localId and name of the element where it has them."""

    line: int = 0
    local_id: int | None = None
    name: str = ""


class PlcFinding(Struct, frozen=True):
    """A fault or a warning with its place."""

    place: PlcPlace
    text: Text

    def stated(self, language: str) -> str:
        """Return the place and the text as one line of text in a language."""
        place = self.place
        parts = [
            f"localId {place.local_id}" if place.local_id is not None else "",
            cut(place.name),
            Text.of("line {line}", line=place.line).in_language(language) if place.line else "",
        ]
        where = ", ".join(filter(None, parts))
        text = self.text.in_language(language)
        return f"{where}: {text}" if where else text

    def public(self, language: str) -> dict[str, Any]:
        """Return the JSON form: `message`, `local_id` (null without), `name`, `line` (0 without)."""
        return {
            "message": self.stated(language),
            "local_id": self.place.local_id,
            "name": cut(self.place.name),
            "line": self.place.line,
        }


class PlcFileError(Exception):
    """A file from which nothing can be read on: its fault."""

    def __init__(self, finding: PlcFinding) -> None:
        super().__init__(str(finding.text))
        self.finding = finding


def unique(findings: Iterable[PlcFinding]) -> tuple[PlcFinding, ...]:
    """Return findings without repetitions, in the order of their lines."""
    texts = {(finding.place, str(finding.text)): finding for finding in findings}
    return tuple(sorted(texts.values(), key=lambda finding: finding.place.line))
