"""Draws a chart with the line-drawing characters of Unicode."""

from collections.abc import Mapping
from typing import Final

from edge.drawing.shapes import Arrow, ChartTarget, Drawing, Frame, Label, Line, LineStyle, ShapeRole, Stroke, cells

# A cell holds two bits for each direction a line leaves it: 1 light, 2 double, 3 heavy.
_NORTH: Final = 64
_EAST: Final = 16
_SOUTH: Final = 4
_WEST: Final = 1
_STROKES: Final = {Stroke.LIGHT: 1, Stroke.DOUBLE: 2, Stroke.HEAVY: 3}
_HEADS: Final = {"down": "▼", "left": "◀"}

_CHARACTERS: Final = """
1010│ 0101─ 0110┌ 0011┐ 1100└ 1001┘ 1110├ 1011┤ 0111┬ 1101┴ 1111┼ 1000╵ 0100╶ 0010╷ 0001╴
2020║ 0202═ 0220╔ 0022╗ 2200╚ 2002╝ 0200═ 0002═ 0212╤ 1202╧ 1212╪ 0210╒ 0012╕ 1200╘ 1002╛ 1210╞ 1012╡ 2120╟ 2021╢
3030┃ 0303━ 0330┏ 0033┓ 3300┗ 3003┛ 0300╺ 0003╸ 1313┿ 0313┯ 1303┷ 3130┠ 3031┨ 1310┝ 1013┥
"""
"""Strokes to north, east, south and west, and the character that draws them."""


def _table() -> dict[int, str]:
    drawn = {0: " "}
    for entry in _CHARACTERS.split():
        north, east, south, west = map(int, entry[:4])
        drawn[north * _NORTH + east * _EAST + south * _SOUTH + west * _WEST] = entry[4]
    # A combination that Unicode lacks is drawn light.
    for bits in range(256):
        light = sum(one for one in (_NORTH, _EAST, _SOUTH, _WEST) if bits & one * 3)
        drawn.setdefault(bits, drawn[light])
    return drawn


_DRAWN: Final = _table()

PLAIN: Final[Mapping[ShapeRole | LineStyle, str]] = {}
ANSI: Final[Mapping[ShapeRole | LineStyle, str]] = {
    LineStyle.ACTIVE: "1;33",
    LineStyle.BUSY: "1;34",
    LineStyle.DONE: "32",
    LineStyle.FAILED: "1;31",
    LineStyle.STOPPED: "35",
    ShapeRole.TITLE: "1",
    ShapeRole.STEP: "1",
    ShapeRole.INITIAL: "1",
    ShapeRole.JUMP: "1",
    ShapeRole.DETAIL: "2",
    ShapeRole.BRANCH: "2;3",
    ShapeRole.ARRIVAL: "2",
    ShapeRole.ORDER: "2",
    ShapeRole.CONDITION: "36",
}
"""Colours for a terminal, as parameters of the escape sequence `CSI … m`."""


def chart_text(drawing: Drawing, colours: Mapping[ShapeRole | LineStyle, str]) -> list[str]:
    """Return the lines of a chart; `colours` is PLAIN or ANSI."""
    rows = [bytearray(drawing.width) for _ in range(drawing.height)]
    for shape in drawing.shapes:
        match shape:
            case Line():
                _draw_line(rows, shape)
            case Frame():
                _draw_frame(rows, shape)
            case Label() | Arrow() | ChartTarget():
                pass
    drawn = {row: row.decode("latin-1").translate(_DRAWN) for row in map(bytes, rows)}
    lines = [list(drawn[bytes(row)]) for row in rows]
    for shape in drawing.shapes:
        match shape:
            case Label():
                _write_text(lines, shape, colours)
            case Arrow():
                lines[shape.y][shape.x] = _HEADS[shape.points]
            case Frame() if colour := colours.get(shape.style):
                _tint(lines, shape, colour)
    return ["".join(line).rstrip() for line in lines]


def _draw_line(rows: list[bytearray], line: Line) -> None:
    stroke = _STROKES[line.stroke]
    if line.y0 == line.y1:
        _across(rows[line.y0], min(line.x0, line.x1), max(line.x0, line.x1), stroke)
    else:
        _along(rows, line.x0, min(line.y0, line.y1), max(line.y0, line.y1), stroke)


def _across(row: bytearray, first: int, last: int, stroke: int) -> None:
    through = stroke * (_EAST + _WEST)
    row[first] |= stroke * _EAST
    row[last] |= stroke * _WEST
    if any(row[first + 1 : last]):
        for x in range(first + 1, last):
            row[x] |= through
    else:
        row[first + 1 : last] = bytes((through,)) * (last - first - 1)


def _along(rows: list[bytearray], x: int, first: int, last: int, stroke: int) -> None:
    if first == last:
        return
    rows[first][x] |= stroke * _SOUTH
    rows[last][x] |= stroke * _NORTH
    through = stroke * (_NORTH + _SOUTH)
    for y in range(first + 1, last):
        rows[y][x] |= through


def _draw_frame(rows: list[bytearray], frame: Frame) -> None:
    stroke = 1
    if frame.role is ShapeRole.INITIAL:
        stroke = 2
    elif frame.style is LineStyle.ACTIVE:
        stroke = 3
    right, bottom = frame.x + frame.width - 1, frame.y + frame.height - 1
    _across(rows[frame.y], frame.x, right, stroke)
    _across(rows[bottom], frame.x, right, stroke)
    _along(rows, frame.x, frame.y, bottom, stroke)
    _along(rows, right, frame.y, bottom, stroke)


def _write_text(lines: list[list[str]], text: Label, colours: Mapping[ShapeRole | LineStyle, str]) -> None:
    written = cells(text.text)
    x = text.x + max(0, text.room - len(written)) // 2
    _write(lines[text.y], x, written, colours.get(text.style) or colours.get(text.role))


def _write(line: list[str], x: int, text: list[str], colour: str | None) -> None:
    if not text:
        return
    line[x : x + len(text)] = text
    if colour:
        line[x] = f"\x1b[{colour}m{line[x]}"
        line[x + len(text) - 1] += "\x1b[0m"


def _tint(lines: list[list[str]], frame: Frame, colour: str) -> None:
    right, bottom = frame.x + frame.width - 1, frame.y + frame.height - 1
    for y in (frame.y, bottom):
        _write(lines[y], frame.x, lines[y][frame.x : right + 1], colour)
    for y in range(frame.y + 1, bottom):
        for x in (frame.x, right):
            _write(lines[y], x, [lines[y][x]], colour)
