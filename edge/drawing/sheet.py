"""Sets a chart on a sheet: title, pieces side by side, waiting reasons of a run; folds forks that are too wide.

A fork that does not fit is drawn as a short line with its name, and its paths follow one below the other.
"""

from typing import Final

from edge.drawing.layout import FoldedFork, Layout, LayoutItem
from edge.drawing.marks import Marks
from edge.drawing.reading import Chart, Fork, Leg, Sequence
from edge.drawing.shapes import (
    MAX_LIMITS,
    Block,
    Drawing,
    Label,
    Line,
    LineLimits,
    Shape,
    ShapeRole,
    clean,
    columns,
    wrap,
)
from edge.foundation.text import ENGLISH, Text, stated_in

MIN_WIDTH: Final = 60
_READABLE: Final = 72
_GAP: Final = 4
_NARROWING: Final = (
    MAX_LIMITS,
    LineLimits(20, 28, 32),
    LineLimits(16, 24, 24),
    LineLimits(16, 23, 23, stacked=True),
    LineLimits(14, 18, 18, stacked=True),
    LineLimits(12, 14, 14, stacked=True),
    LineLimits(8, 10, 10, stacked=True),
)
_UNFOLDED: Final = 5
_MAX_NOTE_LINES: Final = 6


def draw(chart: Chart, title: str, marks: Marks | None, language: str = ENGLISH) -> Drawing:
    """Return a chart drawn as wide as it is, with its texts in a language."""
    block = _whole(chart, Layout(chart.arrivals, MAX_LIMITS, marks, language))
    return _sheet(title, [block], marks, _READABLE, language)


def draw_within(chart: Chart, title: str, marks: Marks | None, width: int) -> Drawing:
    """Return a chart drawn within a width of at least `MIN_WIDTH` columns, with its texts in English."""
    widest, *between, narrowest = (Layout(chart.arrivals, limits, marks) for limits in _NARROWING[:_UNFOLDED])
    block = _whole(chart, widest)
    if block.width > width:
        # Only when its narrowest form fits is it worth while to look for the widest that does.
        least = _whole(chart, narrowest)
        fitting = between if least.width <= width else ()
        blocks = (_whole(chart, layout) for layout in fitting)
        block = next((item for item in blocks if item.width <= width), least)
    if block.width <= width:
        return _sheet(title, [block], marks, width, ENGLISH)
    sections: list[Block] = []
    for limits in _NARROWING[_UNFOLDED - 1 :]:
        sections = _Folding(Layout(chart.arrivals, limits, marks), width).sections(chart)
        if all(block.width <= width for block in sections):
            break
    return _sheet(title, sections, marks, width, ENGLISH)


def _whole(chart: Chart, layout: Layout) -> Block:
    """Set the pieces of a chart side by side."""
    blocks = [layout.sequence(piece) for piece in chart.pieces]
    spines = []
    end = 0
    for block in blocks:
        spines.append(end + block.left)
        end += block.width + _GAP
    first = spines[0]

    def put(x: int, y: int, out: list[Shape]) -> None:
        for spine, block in zip(spines, blocks, strict=True):
            block.put(x + spine - first, y, out)

    return Block(first, end - _GAP - first, max(block.height for block in blocks), 0, 0, put)


def _sheet(title: str, blocks: list[Block], marks: Marks | None, width: int, language: str) -> Drawing:
    """Set blocks one below the other between the title and the notes."""
    shapes: list[Shape] = []
    y = 0
    texts = (title, stated_in(marks.title, language) if marks else "")
    headings = [clean(text) for text in texts if text]
    for heading in headings:
        for text in wrap(heading, width, 2):
            shapes.append(Label(0, y, text, ShapeRole.TITLE))
            y += 1
    y += bool(shapes)
    for block in blocks:
        block.put(block.left, y, shapes)
        y += block.height + 1
    widest = max(block.width for block in blocks)
    if marks is not None and marks.waiting:
        for number, reason in enumerate((Text.of("waiting:"), *marks.waiting)):
            for line, text in enumerate(wrap(stated_in(reason, language), max(widest, width) - 4, _MAX_NOTE_LINES)):
                shapes.append(Label(2 if number == 0 or line == 0 else 4, y, text, ShapeRole.NOTE))
                y += 1
        y += 1
    ends = [shape.x + columns(shape.text) for shape in shapes if isinstance(shape, Label)]
    return Drawing(" – ".join(headings), max(widest, *ends, 1), y - 1, tuple(shapes))


class _Folding:
    """Draws the pieces of a chart and the legs of its folded forks as sections, each no wider than the page."""

    def __init__(self, layout: Layout, width: int) -> None:
        self._layout = layout
        self._width = width
        self._found: list[Block] = []
        self._nameless = 0

    def sections(self, chart: Chart) -> list[Block]:
        """Return the sections in the order in which one reads them."""
        for piece in chart.pieces:
            self._section("", Leg(piece, open=False, entered=False))
        return self._found

    def _section(self, heading: str | Text, leg: Leg) -> None:
        items, folded = self._fold(leg.items)
        self._found.append(_headed(str(heading), leg, self._layout.sequence(items), self._width))
        for folded_fork in folded:
            for number, inner in enumerate(folded_fork.fork.legs, 1):
                path = Text.of(
                    "{fork}: path {number} of {count}",
                    fork=folded_fork.label,
                    number=number,
                    count=len(folded_fork.fork.legs),
                )
                self._section(path, inner)

    def _fold(self, items: Sequence) -> tuple[tuple[LayoutItem, ...], list[FoldedFork]]:
        """Fold the widest forks of a sequence until it fits."""
        blocks = [self._layout.item(item) for item in items]
        laid: list[LayoutItem] = list(items)
        folded: list[FoldedFork] = []
        forks = {number: item for number, item in enumerate(items) if isinstance(item, Fork)}
        while forks and max(b.left for b in blocks) + max(b.right for b in blocks) > self._width:
            widest = max(forks, key=lambda number: blocks[number].width)
            fork = forks.pop(widest)
            self._nameless += not fork.name
            new = FoldedFork(fork.name or Text.of("selection {number}", number=self._nameless), fork)
            folded.append(new)
            laid[widest] = new
            blocks[widest] = self._layout.item(new)
        order = {id(item): number for number, item in enumerate(laid)}
        return tuple(laid), sorted(folded, key=lambda element: order[id(element)])


def _headed(heading: str, leg: Leg, block: Block, width: int) -> Block:
    """Set the name of a section above it, and stubs of line where it is entered and left."""
    lines = wrap(heading, width, 2) if heading else ()
    above = len(lines) + leg.entered

    def put(x: int, y: int, out: list[Shape]) -> None:
        for number, text in enumerate(lines):
            out.append(Label(x - block.left, y + number, text, ShapeRole.BRANCH))
        row = y + above
        if leg.entered:
            out.append(Line(x, row - 1, x, row + block.top))
        block.put(x, row, out)
        if leg.open:
            out.append(Line(x, row + block.bottom, x, row + block.height))

    right = max(block.right, max(map(columns, lines), default=0) - block.left)
    return Block(block.left, right, above + block.height + leg.open, 0, 0, put)
