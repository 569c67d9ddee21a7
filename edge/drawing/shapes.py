"""The shapes a chart is drawn with, on a grid of character cells."""

import unicodedata
from collections.abc import Callable
from enum import StrEnum
from functools import cache
from typing import Final, TypeAlias

from msgspec import Struct


class Stroke(StrEnum):
    """The stroke of a line."""

    LIGHT = "light"
    DOUBLE = "double"
    HEAVY = "heavy"


class ShapeRole(StrEnum):
    """The meaning of a text or frame."""

    STEP = "step"
    INITIAL = "initial"
    TIME = "time"
    QUALIFIER = "qualifier"
    ACTION = "action"
    INDICATOR = "indicator"
    CONDITION = "condition"
    ORDER = "order"
    JUMP = "jump"
    ARRIVAL = "arrival"
    BRANCH = "branch"
    DETAIL = "detail"
    TITLE = "title"
    NOTE = "note"


class LineStyle(StrEnum):
    """The state of a step or action in the run that is shown."""

    PLAIN = "plain"
    ACTIVE = "active"
    VISITED = "visited"
    BUSY = "busy"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"


class Line(Struct, frozen=True):
    """A straight line between the centres of two cells."""

    x0: int
    y0: int
    x1: int
    y1: int
    stroke: Stroke = Stroke.LIGHT


class Frame(Struct, frozen=True):
    """A rectangle whose border runs through the centres of its outermost cells."""

    x: int
    y: int
    width: int
    height: int
    role: ShapeRole
    style: LineStyle = LineStyle.PLAIN


class Label(Struct, frozen=True):
    """A line of text from a cell to the right; with a `room`, in the middle of that many columns."""

    x: int
    y: int
    text: str
    role: ShapeRole
    style: LineStyle = LineStyle.PLAIN
    room: int = 0


class Arrow(Struct, frozen=True):
    """The head of an arrow in a cell."""

    x: int
    y: int
    points: str
    """`down` or `left`."""


class TargetKind(StrEnum):
    """The kind of an element that a person can select; a `way` is an implied transition, which is not written."""

    STEP = "step"
    TRANSITION = "transition"
    WAY = "way"
    ACTION = "action"
    BRANCH = "branch"


class ChartTarget(Struct, frozen=True):
    """The area of an element of the recipe, in cells; only a chart to work with shows it.

    `key` is the name of a step or branch, the number of an action, or the numbers of transitions that are drawn as one.
    """

    x: int
    y: int
    width: int
    height: int
    kind: TargetKind
    key: str
    label: str
    source: str = ""
    target: str = ""


class ChangeMark(StrEnum):
    """What became of an element between two recipes."""

    ADDED = "added"
    REMOVED = "removed"
    CHANGED = "changed"

    @property
    def sign(self) -> str:
        """The sign that says the same as its colour."""
        return _CHANGE_SIGNS[self]


_CHANGE_SIGNS: Final = {ChangeMark.ADDED: "+", ChangeMark.REMOVED: "−", ChangeMark.CHANGED: "~"}
Shape: TypeAlias = Line | Frame | Label | Arrow | ChartTarget


class Drawing(Struct, frozen=True):
    """Shapes on a grid; width and height in cells."""

    title: str
    width: int
    height: int
    shapes: tuple[Shape, ...]


class LineLimits(Struct, frozen=True):
    """The longest lines of names, conditions and details, in columns.

    `stacked` sets an action's indicator below its name instead of next to it.
    """

    name: int
    condition: int
    detail: int
    stacked: bool = False


MAX_LIMITS: Final = LineLimits(24, 36, 44)
MAX_LINES: Final = 4
MAX_CONDITION_LINES: Final = 12


class Block(Struct, frozen=True):
    """A measured part of a chart that hangs on its spine, the column of the line that leads through it.

    It takes `left` columns left of the spine and `right` columns from the spine on; lines enter at row `top` and leave
    at row `bottom`. `put` appends its shapes, once the place of its spine and first row is known.
    """

    left: int
    right: int
    height: int
    top: int
    bottom: int
    put: Callable[[int, int, list[Shape]], None]

    @property
    def width(self) -> int:
        """The columns it takes."""
        return self.left + self.right


_BREAKS: Final = " _.-/:"


@cache
def _column(character: str) -> int:
    if unicodedata.combining(character) or unicodedata.category(character) in {"Mn", "Me"}:
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def columns(text: str) -> int:
    """Count the columns a text takes: a wide character two, a combining one none."""
    return len(text) if text.isascii() else sum(map(_column, text))


def cells(text: str) -> list[str]:
    """Return what stands in each column; the second column of a wide character stays empty."""
    if text.isascii():
        return list(text)
    found: list[str] = []
    for character in text:
        width = _column(character)
        if width == 0 and found:
            found[-1] += character
        else:
            found += [character, ""][: max(1, width)]
    return found


def clean(text: str) -> str:
    """Replace characters that do not print: control characters can control a terminal and are invalid in XML."""
    if text.isprintable():
        return text
    return "".join(word if word.isprintable() else " " if word.isspace() else "\ufffd" for word in text)


def wrap(text: str, width: int, most: int) -> tuple[str, ...]:
    """Cut a text to at most `most` lines, at spaces or within names where it can; what is left out shows as `…`."""
    if len(text) <= width and text.isascii() and text.isprintable():
        return (text.strip(),)
    rest = clean(text).strip()
    lines: list[str] = []
    while columns(rest) > width and len(lines) < most:
        end = _fitting(rest, width)
        at = _last_break(rest, end)
        lines.append(rest[:at].rstrip())
        rest = rest[at:].lstrip()
    if len(lines) < most:
        return (*lines, rest)
    return (*lines[:-1], lines[-1][: _fitting(lines[-1], width - 1)] + "…")


def _last_break(text: str, end: int) -> int:
    """Return where to cut before `end`: behind the last space or mark, or before a capital, if it is not too early."""
    if text[end] == " ":
        return end
    marks = max((at + 1 for at in range(end) if text[at] in _BREAKS), default=0)
    camel = max((at for at in range(1, end + 1) if text[at].isupper() and text[at - 1].islower()), default=0)
    earliest = end // 3
    spaces = text.rfind(" ", 0, end) + 1
    return next((at for at in (spaces, max(marks, camel)) if at > earliest), end)


def _fitting(text: str, width: int) -> int:
    """Count the characters that fit a width; at least one."""
    if text.isascii():
        return max(1, min(width, len(text)))
    taken = 0
    for number, character in enumerate(text):
        taken += _column(character)
        if taken > width:
            return max(1, number)
    return len(text)


def time_literal(value: float) -> str:
    """Return a duration of a recipe as a time literal of the standard."""
    return f"T#{value * 1000:g}ms" if value < 1 else f"T#{value:.10g}s"
