"""Draws a chart as an SVG picture."""

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Final

from edge.drawing.shapes import (
    Arrow,
    ChangeMark,
    ChartTarget,
    Drawing,
    Frame,
    Label,
    Line,
    LineStyle,
    Shape,
    ShapeRole,
    Stroke,
    TargetKind,
    clean,
    columns,
)

_CELL: Final = 8
_TITLE_CELL: Final = 8.5
"""A column of a title, whose font is larger."""
_ROW: Final = 18
_MARGIN: Final = 16
_BASELINE: Final = 13
"""From the top of a row to the line its letters stand on, in pixels."""
_INSET: Final = 4
"""From the outer to the inner frame of an initial step."""

_STYLE: Final = """
text { font: 13px ui-monospace, "DejaVu Sans Mono", Consolas, monospace; fill: #111827; white-space: pre }
.wire { fill: none; stroke: #111827; stroke-width: 1.4 }
.bar { fill: none; stroke: #111827; stroke-width: 4 }
.head { fill: #111827 }
rect { fill: #fff; stroke: #111827; stroke-width: 1.4 }
rect.qualifier, rect.action, rect.indicator { stroke: #374151; stroke-width: 1 }
text.step, text.jump, text.title { font-weight: bold }
text.qualifier { font-weight: bold }
text.title { font-size: 14px }
text.detail, text.arrival { font-size: 12px; fill: #4b5563 }
text.branch { font-size: 12px; font-style: italic; fill: #4b5563 }
text.order { font-size: 12px; fill: #4b5563 }
rect.active { fill: #fef3c7; stroke: #b45309; stroke-width: 3 }
rect.visited { fill: #f3f4f6 }
rect.busy { fill: #dbeafe }
rect.done { fill: #dcfce7 }
rect.failed { fill: #fee2e2 }
rect.step.failed, rect.initial.failed { stroke: #b91c1c; stroke-width: 3 }
rect.stopped { fill: #ede9fe }
.page { stroke: none }
"""
_EDITOR_STYLE: Final = f"{_STYLE}rect.target {{ fill: none; stroke: none }}\n"

_CHANGES_STYLE: Final = (
    _STYLE
    + """
.change rect { fill-opacity: .16; stroke-width: 3 }
.change text { fill: #fff; font-weight: bold; font-size: 15px }
.added rect { fill: #16a34a; stroke: #15803d }
.added circle { fill: #15803d }
.removed rect { fill: #dc2626; stroke: #b91c1c; stroke-dasharray: 6 4 }
.removed circle { fill: #b91c1c }
.changed rect { fill: #d97706; stroke: #b45309 }
.changed circle { fill: #b45309 }
"""
)
_BADGE: Final = 9
"""The radius of a sign at the corner of an element, in pixels."""


def chart_svg(drawing: Drawing) -> str:
    """Return an SVG document. Every text of the recipe is escaped and holds only characters that print."""
    return _document(drawing, "img", _STYLE, ())


def editor_svg(drawing: Drawing) -> str:
    """Return an SVG document in which each element can be selected.

    `data-kind` and `data-key` of a `.target` name the element, see `ChartTarget`; nothing of it is visible.
    """
    targets = [_target(number, shape) for number, shape in enumerate(drawing.shapes) if isinstance(shape, ChartTarget)]
    return _document(drawing, "group", _EDITOR_STYLE, targets)


def changes_svg(drawing: Drawing, changes: Mapping[tuple[TargetKind, str], ChangeMark]) -> str:
    """Return an SVG document with marks at elements, each a colour and a sign; see `ChartTarget` for their names."""
    found = ((shape, _change_of(shape, changes)) for shape in drawing.shapes if isinstance(shape, ChartTarget))
    marks = [_marked(target, change) for target, change in found if change is not None]
    return _document(drawing, "img", _CHANGES_STYLE, marks)


def _change_of(target: ChartTarget, changes: Mapping[tuple[TargetKind, str], ChangeMark]) -> ChangeMark | None:
    """Return the change of an element; of transitions that are drawn as one the first that has one."""
    keys = target.key.split(",") if target.kind is TargetKind.TRANSITION else [target.key]
    return next((change for key in keys if (change := changes.get((target.kind, key)))), None)


def _marked(target: ChartTarget, change: ChangeMark) -> str:
    x, y = _centre(target.x, target.y)
    width, height = (target.width - 1) * _CELL, (target.height - 1) * _ROW
    return (
        f'<g class="change {change}"><title>{change.sign} {escape(clean(target.label))}</title>'
        f'<rect class="mark" x="{x:g}" y="{y:g}" width="{width}" height="{height}"/>'
        f'<circle cx="{x:g}" cy="{y:g}" r="{_BADGE}"/>'
        f'<text x="{x:g}" y="{y + 5:g}" text-anchor="middle">{change.sign}</text></g>'
    )


def _document(drawing: Drawing, role: str, style: str, targets: Sequence[str]) -> str:
    titles = [
        columns(shape.text) for shape in drawing.shapes if isinstance(shape, Label) and shape.role is ShapeRole.TITLE
    ]
    width = max(drawing.width * _CELL, math.ceil(max(titles, default=0) * _TITLE_CELL)) + 2 * _MARGIN
    height = drawing.height * _ROW + 2 * _MARGIN
    size = f'width="{width}" height="{height}"'
    wires: list[str] = []
    bars: list[str] = []
    others: list[str] = []
    texts: list[str] = []
    for shape in drawing.shapes:
        _draw(shape, wires, bars, others, texts)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" role="{role}" {size} viewBox="0 0 {width} {height}">',
        f"<title>{escape(drawing.title)}</title>",
        f"<style>{style}</style>",
        f'<rect class="page" {size}/>',
        f'<path class="wire" d="{"".join(wires)}"/>',
        *others,
        f'<path class="bar" d="{"".join(bars)}"/>',
        *texts,
        *targets,
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _draw(shape: Shape, wires: list[str], bars: list[str], others: list[str], texts: list[str]) -> None:
    match shape:
        case Line():
            if shape.stroke is Stroke.DOUBLE:
                wires += [_path(shape, -2), _path(shape, 2)]
            else:
                (bars if shape.stroke is Stroke.HEAVY else wires).append(_path(shape, 0))
        case Frame():
            others.append(_frame(shape, 0))
            if shape.role is ShapeRole.INITIAL:
                others.append(_frame(shape, _INSET))
        case Arrow():
            texts.append(_head(shape))
        case Label():
            texts.append(_text(shape))
        case ChartTarget():
            pass


def _centre(x: int, y: int) -> tuple[float, float]:
    return _MARGIN + (x + 0.5) * _CELL, _MARGIN + (y + 0.5) * _ROW


def _path(line: Line, shift: int) -> str:
    x0, y0 = _centre(line.x0, line.y0)
    x1, y1 = _centre(line.x1, line.y1)
    return f"M{x0:g} {y0 + shift:g}L{x1:g} {y1 + shift:g}"


def _frame(frame: Frame, inset: int) -> str:
    x, y = _centre(frame.x, frame.y)
    width = (frame.width - 1) * _CELL - 2 * inset
    height = (frame.height - 1) * _ROW - 2 * inset
    style = "" if frame.style is LineStyle.PLAIN else f" {frame.style}"
    return f'<rect class="{frame.role}{style}" x="{x + inset:g}" y="{y + inset:g}" width="{width}" height="{height}"/>'


def _head(arrow: Arrow) -> str:
    x, y = _centre(arrow.x, arrow.y)
    if arrow.points == "down":
        return f'<path class="head" d="M{x - 5:g} {y - 8:g}h10l-5 12z"/>'
    return f'<path class="head" d="M{x - _CELL:g} {y:g}l11 -4.5v9z"/>'


def _text(text: Label) -> str:
    x: float = _MARGIN + text.x * _CELL
    y = _MARGIN + text.y * _ROW + _BASELINE
    anchor = ""
    if text.room:
        x += text.room * _CELL / 2
        anchor = ' text-anchor="middle"'
    return f'<text class="{text.role}" x="{x:g}" y="{y}"{anchor}>{escape(text.text)}</text>'


def _target(number: int, target: ChartTarget) -> str:
    x, y = _MARGIN + target.x * _CELL, _MARGIN + target.y * _ROW
    attributes = {
        "id": f"element-{number}",
        "class": "target",
        "role": "button",
        "tabindex": "-1",
        "aria-label": target.label,
        "data-kind": target.kind,
        "data-key": target.key,
        "data-source": target.source,
        "data-target": target.target,
        "x": x,
        "y": y,
        "width": target.width * _CELL,
        "height": target.height * _ROW,
        "rx": _INSET,
    }
    written = (f'{name}="{escape(clean(str(value)))}"' for name, value in attributes.items())
    return f"<rect {' '.join(written)}/>"
