"""Measures a step with its action blocks: qualifier, name, equipment type, its time limit and its state."""

from typing import Final

from msgspec import Struct

from edge.chart.elements import StepBlock
from edge.chart.marks import SYMBOLS, ActionMark, Marks, StepMark, duration
from edge.chart.shapes import MAX_LINES, Block, Frame, Label, Line, LineLimits, LineStyle, Shape, ShapeRole
from edge.chart.words import columns, time_literal, wrap
from edge.model.recipe import Action, Interaction
from edge.sfc.qualifier import QUALIFIER_RULES
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
    """One action: the lines of its cells."""

    cells: tuple[_Lines, _Lines, _Lines]
    style: LineStyle

    @property
    def height(self) -> int:
        return max(map(len, self.cells))


def step_block(step: StepBlock, limits: LineLimits, marks: Marks | None) -> Block:
    """Measure a step; its spine is the middle of its frame."""
    mark = marks.steps.get(step.name) if marks else None
    lines = _step_lines(step, limits, mark)
    width = max(_MIN_STEP_WIDTH, *(columns(text) + 4 for text, _ in lines))
    width += 1 - width % 2
    height = len(lines) + 2
    rows = [_row(action, limits, marks.actions.get(number) if marks else None) for number, action in step.actions]
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


def _step_lines(step: StepBlock, limits: LineLimits, mark: StepMark | None) -> _Lines:
    lines: _Lines = [(text, ShapeRole.STEP) for text in wrap(step.name, limits.name, MAX_LINES)]
    if step.locks:
        lines += [(text, ShapeRole.DETAIL) for text in wrap(f"lock {', '.join(step.locks)}", limits.name, 2)]
    if mark is not None and mark.fault:
        lines.append((f"{SYMBOLS[ActionState.FAILED]} fault", ShapeRole.TIME))
    elif mark is not None:
        times = f" ×{mark.count}" if mark.count > 1 else ""
        token = "● " if mark.active else ""
        lines.append((f"{token}{duration(mark.elapsed_ms)}{times}", ShapeRole.TIME))
    return lines


def _row(action: Action, limits: LineLimits, mark: ActionMark | None) -> _Row:
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
        indicator += [(text, ShapeRole.TIME) for part in _standing(mark) for text in wrap(part, limits.detail, 2)]
    cells = (qualifier, name + indicator, []) if limits.stacked else (qualifier, name, indicator)
    return _Row(cells, LineStyle.PLAIN if mark is None else _STYLES[mark.state])


def _standing(mark: ActionMark) -> list[str]:
    parts = [mark.text]
    if mark.elapsed_ms is not None:
        parts.append(duration(mark.elapsed_ms) + (f", #{mark.attempt}" if mark.attempt > 1 else ""))
    if mark.stored:
        parts.append("is set")
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
        y += row.height + 1
