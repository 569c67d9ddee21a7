"""Draws the graph of a flow with the states of a cycle, as shapes that `edge.chart` sets as SVG or as text."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.chart.shapes import Arrow, Drawing, Frame, Label, Line, LineStyle, Shape, ShapeRole
from edge.chart.words import clean, columns, wrap
from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask
from edge.features.flows.graph_layout import GraphLayout, Point, lay_out
from edge.features.flows.plan import Plan

_WIDEST: Final = 26
"""Columns of a text in a node."""
_MOST_LINES: Final = 3
_PADDING: Final = 2

_STYLES: Final[Mapping[NodeStatus, LineStyle]] = {
    NodeStatus.REGISTERED: LineStyle.PLAIN,
    NodeStatus.PENDING: LineStyle.BUSY,
    NodeStatus.RUNNING: LineStyle.ACTIVE,
    NodeStatus.COMPLETED: LineStyle.DONE,
    NodeStatus.FAILED: LineStyle.FAILED,
    NodeStatus.TERMINATED: LineStyle.STOPPED,
    NodeStatus.SKIPPED: LineStyle.VISITED,
}


class _Box(Struct, frozen=True):
    """The texts of a node and the style of its frame."""

    lines: tuple[tuple[str, ShapeRole], ...]
    style: LineStyle

    @property
    def width(self) -> int:
        """Return the columns of the frame, an odd number."""
        return (max(columns(text) for text, _ in self.lines) + 2 * _PADDING) | 1


def draw_flow(plan: Plan, cycle: Cycle | None) -> Drawing:
    """Return the graph of a flow, component by component, with the states of a cycle when there is one."""
    title = clean(plan.id) if cycle is None else f"{clean(plan.id)}  cycle {cycle.number}  {cycle.status.value}"
    shapes: list[Shape] = [Label(0, 0, title, ShapeRole.TITLE)]
    top, width = 2, columns(title)
    for index, component in enumerate(plan.components):
        if len(plan.components) > 1:
            shapes.append(Label(0, top, f"component {index}", ShapeRole.BRANCH))
            top += 1
        boxes = {node: _box(plan, node, cycle.tasks[node] if cycle else None) for node in component}
        layers = [[node for node in layer if node in boxes] for layer in plan.layers]
        layout = lay_out(
            [layer for layer in layers if layer],
            {node: plan.successors[node] for node in component},
            {node: box.width for node, box in boxes.items()},
        )
        top = _put(layout, boxes, top, shapes) + 2
        width = max(width, layout.width)
    return Drawing(title, width, top - 1, tuple(shapes))


def _box(plan: Plan, node: str, task: NodeTask | None) -> _Box:
    lines = [(text, ShapeRole.STEP) for text in wrap(node, _WIDEST, _MOST_LINES)]
    lines += [(text, ShapeRole.DETAIL) for text in wrap(plan.nodes[node].kind.name, _WIDEST, 1)]
    if task is None:
        return _Box(tuple(lines), LineStyle.PLAIN)
    tries = f" ({task.attempts} attempts)" if task.attempts > 1 else ""
    lines.append((f"{task.shown_status.value}{tries}", ShapeRole.INDICATOR))
    if detail := _detail(task):
        lines += [(text, ShapeRole.DETAIL) for text in wrap(detail, _WIDEST, _MOST_LINES)]
    return _Box(tuple(lines), _STYLES[task.shown_status])


def _detail(task: NodeTask) -> str:
    """Return why a task did not complete, or the beginning of its output."""
    if task.reason:
        return task.reason
    if task.status is not NodeStatus.COMPLETED:
        return ""
    return _shortened(task.output)


def _shortened(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    text = msgspec.json.encode(value)[: 4 * _WIDEST].decode(errors="ignore")
    return text if len(text) <= _WIDEST else f"{text[: _WIDEST - 1]}…"


def _put(layout: GraphLayout, boxes: Mapping[str, _Box], top: int, shapes: list[Shape]) -> int:
    """Append the shapes of a component; return the row of its lower edge."""
    bottom = top
    for number, layer in enumerate(layout.layers):
        height = 2 + max(len(boxes[node].lines) for node, at in layer if _is_node(layout, (node, at)))
        bottom = top + height - 1
        for point in layer:
            centre = layout.centres[point]
            if _is_node(layout, point):
                _put_box(boxes[point[0]], centre, top, height, shapes)
            else:
                shapes.append(Line(centre, top - 1, centre, bottom))
        if number < len(layout.wires):
            top = _put_wires(layout, number, bottom, shapes)
    return bottom


def _is_node(layout: GraphLayout, point: Point) -> bool:
    """Return whether a point is its node, not a place that an edge to it passes."""
    node, number = point
    return all((node, later) not in layout.centres for later in range(number + 1, len(layout.layers)))


def _put_box(box: _Box, centre: int, top: int, height: int, shapes: list[Shape]) -> None:
    left = centre - box.width // 2
    shapes.append(Frame(left, top, box.width, height, ShapeRole.ACTION, box.style))
    for row, (text, role) in enumerate(box.lines):
        style = box.style if role is ShapeRole.INDICATOR else LineStyle.PLAIN
        # Set in the middle of the frame.
        shapes.append(Label(left + 1, top + 1 + row, text, role, style, box.width - 2))


def _put_wires(layout: GraphLayout, number: int, bottom: int, shapes: list[Shape]) -> int:
    """Append the wires below a layer; return the row in which the next layer begins."""
    wires = layout.wires[number]
    rows = max((wire.row for wire in wires), default=0) + 1
    heads = bottom + rows + 1
    for wire in wires:
        at, row = layout.centres[wire.source], bottom + 1 + wire.row
        ends = [layout.centres[each] for each in wire.targets]
        shapes.append(Line(at, bottom, at, row))
        if min(ends) != max(ends) or ends[0] != at:
            shapes.append(Line(min(at, *ends), row, max(at, *ends), row))
        for target, end in zip(wire.targets, ends, strict=True):
            if _is_node(layout, target):
                shapes += [Line(end, row, end, heads), Arrow(end, heads, "down")]
            else:
                shapes.append(Line(end, row, end, heads))
    return heads + 1
