"""Finds where the elements of a recipe stand in its JSON text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Final, TypeAlias

from edge.features.recipes.finding import ElementType

Positions: TypeAlias = Mapping[tuple[ElementType, int], tuple[int, int]]
"""Line and column of each element, counted from 1, by its type and its place in its list."""

NO_POSITIONS: Final[Positions] = {}
_LISTS: Final = {
    "steps": ElementType.STEP,
    "transitions": ElementType.TRANSITION,
    "actions": ElementType.ACTION,
}
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_DECODER: Final = json.JSONDecoder()


def positions_of(text: str) -> Positions:
    """Return where each element begins in a text that is a JSON object."""
    positions: dict[tuple[ElementType, int], tuple[int, int]] = {}
    at = _skip(text, _skip(text, 0) + 1)
    while text[at] == '"':
        key, at = _DECODER.raw_decode(text, at)
        at = _skip(text, _skip(text, at) + 1)
        kind = _LISTS.get(key.lower())
        if kind is not None and text[at] == "[":
            at = _read_items(text, at, kind, positions)
        else:
            _, at = _DECODER.raw_decode(text, at)
        at = _skip(text, at)
        if text[at] == ",":
            at = _skip(text, at + 1)
    return positions


def _read_items(
    text: str, at: int, kind: ElementType, positions: dict[tuple[ElementType, int], tuple[int, int]]
) -> int:
    """Read where each item of a list begins; return the place behind the list."""
    at, number = _skip(text, at + 1), 0
    while text[at] != "]":
        positions[kind, number] = (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))
        _, at = _DECODER.raw_decode(text, at)
        at, number = _skip(text, at), number + 1
        if text[at] == ",":
            at = _skip(text, at + 1)
    return at + 1


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
