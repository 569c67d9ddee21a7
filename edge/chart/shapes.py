"""The shapes a chart is drawn with, on a grid of character cells."""

from collections.abc import Callable
from enum import StrEnum
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


Shape: TypeAlias = Line | Frame | Label | Arrow


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
