"""Computes the layout of chart elements: measures steps, aligns the spines of a sequence, sets forks side by side."""

from collections.abc import Mapping
from itertools import zip_longest
from typing import Final, TypeAlias, assert_never

from msgspec import Struct

from edge.drawing.marks import SYMBOLS, ActionMark, Marks, StepMark, duration
from edge.drawing.reading import Fork, Item, Jump, Leg, StepBlock, TransitionBar
from edge.drawing.shapes import (
    MAX_CONDITION_LINES,
    MAX_LINES,
    Arrow,
    Block,
    ChartTarget,
    Frame,
    Label,
    Line,
    LineLimits,
    LineStyle,
    Shape,
    ShapeRole,
    Stroke,
    TargetKind,
    columns,
    time_literal,
    wrap,
)
from edge.foundation.text import ENGLISH, Text
from edge.model.recipe import Action, BranchType, Interaction
from edge.sfc.net import QUALIFIER_RULES
from edge.sfc.run import ActionState

_MIN_STEP_WIDTH: Final = 11
_LINK: Final = 3
_STYLES: Final = {
    ActionState.PENDING: LineStyle.PLAIN,
    ActionState.DISPATCHED: LineStyle.BUSY,
    ActionState.WAITING: LineStyle.BUSY,
    ActionState.COMPLETED: LineStyle.DONE,
    ActionState.FAILED: LineStyle.FAILED,
    ActionState.TIMED_OUT: LineStyle.FAILED,
    ActionState.STOPPED: LineStyle.STOPPED,
    ActionState.UNKNOWN: LineStyle.FAILED,
}

_Lines = list[tuple[str, ShapeRole]]


class _Row(Struct, frozen=True):
    """One action: its number in the recipe, its name, and the lines of its cells."""

    number: int
    name: str
    cells: tuple[_Lines, _Lines, _Lines]
    style: LineStyle

    @property
    def height(self) -> int:
        return max(map(len, self.cells))


def step_block(step: StepBlock, limits: LineLimits, marks: Marks | None, language: str = ENGLISH) -> Block:
    """Measure a step; its spine is the middle of its frame."""
    mark = marks.steps.get(step.name) if marks else None
    lines = _step_lines(step, limits, mark, language)
    width = max(_MIN_STEP_WIDTH, *(columns(text) + 4 for text, _ in lines))
    width += 1 - width % 2
    height = len(lines) + 2
    rows = [
        _row(number, action, limits, marks.actions.get(number) if marks else None, language)
        for number, action in step.actions
    ]
    widths = _widths(rows)
    table_width = sum(widths) + len(widths) + 1
    table_height = sum(row.height for row in rows) + len(rows) + 1
    style = _style(mark)

    def put(x: int, y: int, out: list[Shape]) -> None:
        left = x - width // 2
        out.append(Frame(left, y, width, height, ShapeRole.INITIAL if step.initial else ShapeRole.STEP, style))
        for number, (text, role) in enumerate(lines, 1):
            out.append(Label(left + 1, y + number, text, role, style, room=width - 2))
        if rows:
            table = left + width - 1 + _LINK
            out.append(Line(left + width - 1, y + 1, table, y + 1))
            _put_table(rows, widths, table, y, out)
        out.append(ChartTarget(left, y, width, height, TargetKind.STEP, step.name, step.name))

    return Block(
        left=width // 2,
        right=width - width // 2 + (_LINK - 1 + table_width if rows else 0),
        height=max(height, table_height) if rows else height,
        top=0,
        bottom=height - 1,
        put=put,
    )


def _style(mark: StepMark | None) -> LineStyle:
    if mark is None:
        return LineStyle.PLAIN
    if mark.fault:
        return LineStyle.FAILED
    return LineStyle.ACTIVE if mark.active else LineStyle.VISITED


def _step_lines(step: StepBlock, limits: LineLimits, mark: StepMark | None, language: str) -> _Lines:
    lines: _Lines = [(text, ShapeRole.STEP) for text in wrap(step.name, limits.name, MAX_LINES)]
    if step.locks:
        locks = Text.of("lock {lock}", lock=", ".join(step.locks)).in_language(language)
        lines += [(text, ShapeRole.DETAIL) for text in wrap(locks, limits.name, 2)]
    if mark is not None and mark.fault:
        fault = Text.of("fault").in_language(language)
        lines.append((f"{SYMBOLS[ActionState.FAILED]} {fault}", ShapeRole.TIME))
    elif mark is not None:
        times = f" ×{mark.count}" if mark.count > 1 else ""
        token = "● " if mark.active else ""
        lines.append((f"{token}{duration(mark.elapsed_ms)}{times}", ShapeRole.TIME))
    return lines


def _row(number: int, action: Action, limits: LineLimits, mark: ActionMark | None, language: str) -> _Row:
    qualifier: _Lines = [(action.qualifier.value, ShapeRole.QUALIFIER)]
    if QUALIFIER_RULES[action.qualifier].timed:
        qualifier += [(text, ShapeRole.DETAIL) for text in wrap(time_literal(action.duration_seconds), limits.name, 2)]
    sign = "→" if action.interaction is Interaction.PUSH_COMMAND else "←"
    name: _Lines = [
        (text, ShapeRole.ACTION) for text in wrap(action.name, max(limits.name, limits.detail - 8), MAX_LINES)
    ]
    name += [(text, ShapeRole.DETAIL) for text in wrap(f"{sign} {action.type_id}", limits.detail, MAX_LINES)]
    indicator: _Lines = []
    if action.timeout_seconds:
        indicator += [
            (text, ShapeRole.INDICATOR) for text in wrap(f"≤ {action.timeout_seconds:.10g} s", limits.detail, 2)
        ]
    if mark is not None:
        indicator += [
            (text, ShapeRole.TIME) for part in _standing(mark, language) for text in wrap(part, limits.detail, 2)
        ]
    cells = (qualifier, name + indicator, []) if limits.stacked else (qualifier, name, indicator)
    return _Row(number, action.name, cells, LineStyle.PLAIN if mark is None else _STYLES[mark.state])


def _standing(mark: ActionMark, language: str) -> list[str]:
    parts = [f"{SYMBOLS[mark.state]} {mark.text.in_language(language)}"]
    if mark.elapsed_ms is not None:
        parts.append(duration(mark.elapsed_ms) + (f", #{mark.attempt}" if mark.attempt > 1 else ""))
    if mark.stored:
        parts.append(Text.of("is set").in_language(language))
    return parts


def _widths(rows: list[_Row]) -> list[int]:
    """Return the width of each column with its padding; without timeout or mark there is no third column."""
    found = [max((columns(text) for row in rows for text, _ in row.cells[column]), default=0) for column in range(3)]
    return [width + 2 for width in found if width]


def _put_table(rows: list[_Row], widths: list[int], left: int, top: int, out: list[Shape]) -> None:
    roles = (ShapeRole.QUALIFIER, ShapeRole.ACTION, ShapeRole.INDICATOR)
    y = top
    for row in rows:
        x = left
        for width, role, lines in zip(widths, roles, row.cells, strict=False):
            out.append(Frame(x, y, width + 2, row.height + 2, role, row.style))
            room = width if role is ShapeRole.QUALIFIER else 0
            for number, (text, kind) in enumerate(lines, 1):
                out.append(Label(x + 1 + (not room), y + number, text, kind, row.style, room))
            x += width + 1
        out.append(ChartTarget(left, y, x - left + 1, row.height + 2, TargetKind.ACTION, str(row.number), row.name))
        y += row.height + 1


_BAR: Final = 2
"""How far a transition's bar reaches to each side."""
_GAP: Final = 3
"""Columns between legs."""


class FoldedFork(Struct, frozen=True):
    """A fork whose legs are drawn elsewhere, under the name `label`."""

    label: str | Text
    fork: Fork


LayoutItem: TypeAlias = Item | FoldedFork


class Layout:
    """Measures blocks within the line limits; `arrivals` maps a target to the sources of its jumps."""

    def __init__(
        self,
        arrivals: Mapping[str, tuple[str, ...]],
        limits: LineLimits,
        marks: Marks | None,
        language: str = ENGLISH,
    ) -> None:
        self._arrivals = arrivals
        self._limits = limits
        self._marks = marks
        self._language = language
        self._measured: dict[int, tuple[LayoutItem, Block]] = {}

    def sequence(self, items: tuple[LayoutItem, ...]) -> Block:
        """Measure items one below the other, joined by a line along their common spine."""
        blocks = [self.item(item) for item in items]
        if not blocks:
            return Block(0, 1, 1, 0, 0, lambda _x, _y, _out: None)
        rows = [0]
        for item, after, block in zip_longest(items, items[1:], blocks):
            # Transitions and divergences begin with a line of their own.
            loose = isinstance(item, Fork) and isinstance(after, StepBlock | Jump)
            rows.append(rows[-1] + block.height + loose)

        def put(x: int, y: int, out: list[Shape]) -> None:
            before: int | None = None
            for row, block in zip(rows, blocks, strict=False):
                if before is not None:
                    out.append(Line(x, before, x, y + row + block.top))
                block.put(x, y + row, out)
                before = y + row + block.bottom

        return Block(
            left=max(block.left for block in blocks),
            right=max(block.right for block in blocks),
            height=rows[-1],
            top=blocks[0].top,
            bottom=rows[-2] + blocks[-1].bottom,
            put=put,
        )

    def item(self, item: LayoutItem) -> Block:
        """Measure one item; cache the measure for later calls."""
        known = self._measured.get(id(item))
        if known is None:
            # The cache keeps the item, so that its id() cannot be reused.
            known = self._measured[id(item)] = (item, self._measure(item))
        return known[1]

    def _measure(self, item: LayoutItem) -> Block:
        match item:
            case StepBlock():
                return self._arriving(item.name, step_block(item, self._limits, self._marks, self._language))
            case TransitionBar():
                return self._transition_bar(item)
            case Jump():
                return self._jump(item)
            case FoldedFork():
                return self._folded_fork(item)
            case Fork():
                return self._fork(item)
            case _:
                assert_never(item)

    def _arriving(self, name: str, block: Block) -> Block:
        """Add a row above a block for the arrow and the sources of the jumps to it."""
        sources = self._arrivals.get(name)
        if not sources:
            return block
        (text,) = wrap(", ".join(dict.fromkeys(sources)), self._limits.detail, 1)

        def put(x: int, y: int, out: list[Shape]) -> None:
            out.append(Line(x, y, x, y + 1 + block.top))
            out.append(Line(x, y, x + 1, y))
            out.append(Arrow(x + 1, y, "left"))
            out.append(Label(x + 3, y, text, ShapeRole.ARRIVAL))
            block.put(x, y + 1, out)

        right = max(block.right, 3 + columns(text))
        return Block(block.left, right, block.height + 1, 0, block.bottom + 1, put)

    def _transition_bar(self, bar: TransitionBar) -> Block:
        lines = wrap(bar.condition, self._limits.condition, MAX_CONDITION_LINES)
        order = str(bar.order) if bar.order else ""

        def put(x: int, y: int, out: list[Shape]) -> None:
            out.append(Line(x, y, x, y + 2))
            out.append(Line(x - _BAR, y + 1, x + _BAR, y + 1, Stroke.HEAVY))
            if order:
                out.append(Label(x - _BAR - 1 - len(order), y + 1, order, ShapeRole.ORDER))
            for number, text in enumerate(lines):
                out.append(Label(x + _BAR + 2, y + 1 + number, text, ShapeRole.CONDITION))
            out.append(_target_of(bar, x - _BAR, y, 2 * _BAR + 3 + max(map(columns, lines)), len(lines) + 2))

        return Block(
            left=_BAR + (1 + len(order) if order else 0),
            right=_BAR + 2 + max(map(columns, lines)),
            height=len(lines) + 2,
            top=0,
            bottom=2,
            put=put,
        )

    def _jump(self, jump: Jump) -> Block:
        lines = wrap(jump.target, self._limits.name, MAX_LINES)

        def put(x: int, y: int, out: list[Shape]) -> None:
            out.append(Arrow(x, y, "down"))
            for number, text in enumerate(lines):
                out.append(Label(x + 2, y + number, text, ShapeRole.JUMP))

        return Block(0, 2 + max(map(columns, lines)), len(lines), 0, 0, put)

    def _folded_fork(self, folded: FoldedFork) -> Block:
        text = Text.of("{fork}: {count} paths, below", fork=folded.label, count=len(folded.fork.legs))
        lines = wrap(text.in_language(self._language), self._limits.condition, MAX_LINES)
        stroke = _stroke(folded.fork)

        def put(x: int, y: int, out: list[Shape]) -> None:
            out.append(Line(x, y, x, y + 2))
            out.append(Line(x - _BAR, y + 1, x + _BAR, y + 1, stroke))
            for number, line in enumerate(lines):
                out.append(Label(x + _BAR + 2, y + 1 + number, line, ShapeRole.BRANCH))

        block = Block(_BAR, _BAR + 2 + max(map(columns, lines)), len(lines) + 2, 0, 2, put)
        return self._arriving(folded.fork.name, block)

    def _fork(self, fork: Fork) -> Block:
        legs = _Legs(fork, [self.sequence(leg.items) for leg in fork.legs])
        label = f"{'* ' if _has_orders(fork) else ''}{fork.name}".strip()
        text = wrap(label, self._limits.name + 2, 1)[0]

        def put(x: int, y: int, out: list[Shape]) -> None:
            if text:
                out.append(Label(x + 2, y, text, ShapeRole.BRANCH))
            legs.put(x, y + 1, out)
            if fork.name:
                out.append(ChartTarget(x + 1, y - 1, 2 + columns(text), 3, TargetKind.BRANCH, fork.name, fork.name))

        block = Block(
            left=legs.left,
            right=max(legs.right, 2 + columns(text)),
            height=legs.height + 1,
            top=1,
            bottom=legs.bottom + 1,
            put=put,
        )
        return self._arriving(fork.name, block)


def _target_of(bar: TransitionBar, x: int, y: int, width: int, height: int) -> ChartTarget:
    """Return the area of a transition with its condition."""
    way = f"{bar.source} → {bar.target}"
    kind = TargetKind.TRANSITION if bar.numbers else TargetKind.WAY
    key = ",".join(map(str, bar.numbers)) or way
    return ChartTarget(x, y, width, height, kind, key, f"{way}: {bar.condition}", bar.source, bar.target)


class _Legs:
    """The legs of a fork between its divergence, in row 0, and its convergence."""

    def __init__(self, fork: Fork, blocks: list[Block]) -> None:
        self._stroke = _stroke(fork)
        self._legs = fork.legs
        self._blocks = blocks
        margin = _BAR if fork.type is BranchType.SIMULTANEOUS else 0
        self._margin = margin
        spines = []
        end = 0
        for block in blocks:
            spines.append(end + max(block.left, margin))
            end = spines[-1] + max(block.right, margin + 1) + _GAP
        end -= _GAP
        open_spines = [spine for spine, leg in zip(spines, self._legs, strict=True) if leg.open]
        on_line = [spine for spine, leg in zip(spines, self._legs, strict=True) if leg.entered or leg.open]
        self._straight = len(open_spines) == 1 and not margin
        middle = open_spines[0] if self._straight else _middle(on_line or spines[:1])
        self._offsets = [spine - middle for spine in spines]
        self.left = middle
        self.right = end - middle
        self._first = 2 if margin else 1
        deepest = max(block.height for block in blocks)
        loose = any(leg.open and not _ends_with_bar(leg) for leg in self._legs)
        self._convergence = self._first + deepest + loose
        if self._straight:
            number = self._offsets.index(0)
            self.bottom = self._first + blocks[number].bottom
            self.height = self._first + deepest
        else:
            self.bottom = self._convergence
            self.height = self._convergence + 1 if open_spines else self._first + deepest

    def put(self, x: int, y: int, out: list[Shape]) -> None:
        """Return the shapes of the lines and legs."""
        entered = [0]
        opened = [0]
        for offset, leg, block in zip(self._offsets, self._legs, self._blocks, strict=True):
            row = y + self._first
            if leg.entered:
                entered.append(offset)
                out.append(Line(x + offset, y, x + offset, row + block.top))
            block.put(x + offset, row, out)
            if leg.open and not self._straight:
                opened.append(offset)
                out.append(Line(x + offset, row + block.bottom, x + offset, y + self._convergence))
        if len(entered) > 1:
            self._across(entered, x, y, out)
        if len(opened) > 1:
            self._across(opened, x, y + self._convergence, out)

    def _across(self, offsets: list[int], x: int, y: int, out: list[Shape]) -> None:
        first, last = x + min(offsets) - self._margin, x + max(offsets) + self._margin
        if first != last:
            out.append(Line(first, y, last, y, self._stroke))


def _middle(spines: list[int]) -> int:
    """Return the middle of a line, or a leg close to it: a small step in a line looks like a fault."""
    middle = (min(spines) + max(spines)) // 2
    nearest = min(spines, key=lambda spine: abs(spine - middle))
    return nearest if abs(nearest - middle) <= _BAR else middle


def _stroke(fork: Fork) -> Stroke:
    return Stroke.DOUBLE if fork.type is BranchType.SIMULTANEOUS else Stroke.LIGHT


def _has_orders(fork: Fork) -> bool:
    return any(isinstance(item, TransitionBar) and item.order for leg in fork.legs for item in leg.items[:1])


def _ends_with_bar(leg: Leg) -> bool:
    return bool(leg.items) and isinstance(leg.items[-1], TransitionBar)
