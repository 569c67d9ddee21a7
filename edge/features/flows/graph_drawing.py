"""Draws the graph of a flow with the states of a cycle, as shapes that `edge.drawing` sets as SVG or as text.

Its nodes stand on a grid: layers from top to bottom, with few crossings, and the lines between them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.drawing.shapes import Arrow, Drawing, Frame, Label, Line, LineStyle, Shape, ShapeRole, clean, columns, wrap
from edge.drawing.svg import chart_svg
from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.hidden_outputs import MayRead, hidden_nodes, shown_tasks
from edge.features.flows.plan import Plan
from edge.features.flows.public_flow import word_of
from edge.features.flows.public_form import load_cycle
from edge.foundation.errors import Refused
from edge.foundation.text import ENGLISH, Text

_SWEEPS: Final = 4
GAP: Final = 4
"""Columns between two nodes of a layer."""

Point: TypeAlias = tuple[str, int]
"""A node and its layer; an edge over several layers passes a point of its target in each layer between."""


class Wire(Struct, frozen=True):
    """The edges from one point to points of the next layer: the columns of its source and targets, and its row.

    Rows count from 0 in the channel between two layers.
    """

    source: Point
    targets: tuple[Point, ...]
    row: int


class GraphLayout(Struct, frozen=True):
    """The centre column of each point, and the wires below each layer."""

    layers: tuple[tuple[Point, ...], ...]
    centres: Mapping[Point, int]
    wires: tuple[tuple[Wire, ...], ...]
    width: int


def lay_out(
    layers: Sequence[Sequence[str]], successors: Mapping[str, Iterable[str]], widths: Mapping[str, int]
) -> GraphLayout:
    """Return the places of nodes; `widths` are odd numbers of columns."""
    level = {node: number for number, layer in enumerate(layers) for node in layer}
    points: list[list[Point]] = [[(node, number) for node in layer] for number, layer in enumerate(layers)]
    edges: dict[Point, dict[Point, None]] = {}
    for source, targets in successors.items():
        for target in targets:
            # Edges to one node share the points between the layers.
            above: Point = (source, level[source])
            for between in range(level[source] + 1, level[target]):
                point = (target, between)
                if point not in points[between]:
                    points[between].append(point)
                edges.setdefault(above, {})[point] = None
                above = point
            edges.setdefault(above, {})[target, level[target]] = None
    ordered = _ordered(points, edges)
    centres = _placed(ordered, edges, {point: _width(point, level, widths) for layer in ordered for point in layer})
    width = max(
        (centres[point] + _width(point, level, widths) // 2 + 1 for layer in ordered for point in layer), default=0
    )
    wires = tuple(_wires(layer, edges, centres) for layer in ordered[:-1])
    return GraphLayout(tuple(map(tuple, ordered)), centres, wires, width)


def _width(point: Point, level: Mapping[str, int], widths: Mapping[str, int]) -> int:
    node, number = point
    return widths[node] if level[node] == number else 1


_Edges: TypeAlias = Mapping[Point, Mapping[Point, None]]


def _ordered(points: Sequence[Sequence[Point]], edges: _Edges) -> list[list[Point]]:
    """Return the layers with each point near its neighbours (barycentres, swept down and up)."""
    sources = _sources(edges)
    found = [list(layer) for layer in points]
    for sweep in range(_SWEEPS):
        if sweep % 2 == 0:
            for number in range(1, len(found)):
                found[number] = _near(found[number], found[number - 1], sources)
        else:
            for number in range(len(found) - 2, -1, -1):
                found[number] = _near(found[number], found[number + 1], edges)
    return found


def _near(
    layer: Sequence[Point], reference: Sequence[Point], neighbours: Mapping[Point, Iterable[Point]]
) -> list[Point]:
    """Return a layer sorted by the mean place of each point's neighbours in the layer next to it."""
    places = {point: at for at, point in enumerate(reference)}

    def centre(entry: tuple[int, Point]) -> float:
        at, point = entry
        found = [places[neighbour] for neighbour in neighbours.get(point, ())]
        return sum(found) / len(found) if found else at

    return [point for _, point in sorted(enumerate(layer), key=centre)]


def _sources(edges: _Edges) -> dict[Point, list[Point]]:
    found: dict[Point, list[Point]] = {}
    for source, targets in edges.items():
        for target in targets:
            found.setdefault(target, []).append(source)
    return found


def _placed(layers: Sequence[Sequence[Point]], edges: _Edges, widths: Mapping[Point, int]) -> dict[Point, int]:
    """Return the centre of each point: in the middle of its sources where there is room; all are even numbers."""
    sources = _sources(edges)
    totals = [sum(widths[point] + GAP for point in layer) for layer in layers]
    centres: dict[Point, int] = {}
    for layer, total in zip(layers, totals, strict=True):
        wanted = [[centres[source] for source in sources.get(point, ())] for point in layer]
        at, places = (0 if centres else (max(totals) - total) // 2), []
        for point, near in zip(layer, wanted, strict=True):
            half = widths[point] // 2
            wish = round(sum(near) / len(near)) if near else at + half
            centre = max(at + half, wish)
            centre += centre % 2
            places.append(centre)
            at = centre + half + 1 + GAP
        # Move the layer left as a whole when its points lie right of their sources.
        offsets = [place - sum(near) / len(near) for place, near in zip(places, wanted, strict=True) if near]
        left = min((place - widths[point] // 2 for point, place in zip(layer, places, strict=True)), default=0)
        shift = int(min(left, max(0.0, sum(offsets) / len(offsets)))) if offsets else 0
        shift -= shift % 2
        centres |= {point: place - shift for point, place in zip(layer, places, strict=True)}
    return centres


def _wires(layer: Sequence[Point], edges: _Edges, centres: Mapping[Point, int]) -> tuple[Wire, ...]:
    """Return the wires below a layer; where a wire begins above the end of another, it has a row above it."""
    targets = {point: tuple(edges[point]) for point in layer if edges.get(point)}
    # A straight wire needs no row; one that bends has a row of its own.
    bent = [point for point in targets if any(centres[target] != centres[point] for target in targets[point])]
    ends = {point: {centres[target] for target in targets[point]} for point in bent}
    rows: dict[Point, int] = {}
    waiting = list(bent)
    while waiting:
        free = [
            point
            for point in waiting
            if not any(centres[point] in ends[other] for other in waiting if other is not point)
        ]
        # The wires of a knot cross each other whatever their order is.
        lowest = (free or waiting)[-1]
        waiting.remove(lowest)
        rows[lowest] = len(waiting)
    return tuple(Wire(point, targets[point], rows.get(point, 0)) for point in targets)


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


class _Words(Struct, frozen=True):
    """The words of a drawing: those of the page in the language of a reader, without one those of programs."""

    language: str | None

    def of(self, word: str) -> str:
        """Return the label of a state, a reason or a part of a flow."""
        return word_of(word, self.language) if self.language else word

    def reason(self, task: NodeTask) -> str:
        """Return why a task did not complete."""
        return self.of(task.reason_in(self.language or ENGLISH))


def draw_flow(plan: Plan, cycle: Cycle | None, language: str | None = None) -> Drawing:
    """Return the graph of a flow, component by component, with the states of a cycle when there is one.

    Its words are those of the page in a language, without one those of programs.
    """
    words = _Words(language)
    title = clean(plan.id)
    if cycle is not None:
        title += f"  {words.of('cycle')} {cycle.number}  {words.of(cycle.status.value)}"
    shapes: list[Shape] = [Label(0, 0, title, ShapeRole.TITLE)]
    top, width = 2, columns(title)
    for index, component in enumerate(plan.components):
        if len(plan.components) > 1:
            shapes.append(Label(0, top, f"{words.of('component')} {index}", ShapeRole.BRANCH))
            top += 1
        boxes = {node: _box(plan, node, cycle.tasks[node] if cycle else None, words) for node in component}
        layers = [[node for node in layer if node in boxes] for layer in plan.layers]
        layout = lay_out(
            [layer for layer in layers if layer],
            {node: plan.successors[node] for node in component},
            {node: box.width for node, box in boxes.items()},
        )
        top = _put(layout, boxes, top, shapes) + 2
        width = max(width, layout.width)
    return Drawing(title, width, top - 1, tuple(shapes))


def _box(plan: Plan, node: str, task: NodeTask | None, words: _Words) -> _Box:
    lines = [(text, ShapeRole.STEP) for text in wrap(node, _WIDEST, _MOST_LINES)]
    lines += [(text, ShapeRole.DETAIL) for text in wrap(plan.nodes[node].kind.name, _WIDEST, 1)]
    if task is None:
        return _Box(tuple(lines), LineStyle.PLAIN)
    tries = f" ({task.attempts} {words.of('attempts')})" if task.attempts > 1 else ""
    lines.append((f"{words.of(task.shown_status.value)}{tries}", ShapeRole.INDICATOR))
    if detail := words.reason(task) or _output(task):
        lines += [(text, ShapeRole.DETAIL) for text in wrap(detail, _WIDEST, _MOST_LINES)]
    return _Box(tuple(lines), _STYLES[task.shown_status])


def _output(task: NodeTask) -> str:
    """Return the beginning of the output of a task."""
    value = task.output
    if task.status is not NodeStatus.COMPLETED:
        return ""
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
        ends = [layout.centres[pair] for pair in wire.targets]
        shapes.append(Line(at, bottom, at, row))
        if min(ends) != max(ends) or ends[0] != at:
            shapes.append(Line(min(at, *ends), row, max(at, *ends), row))
        for target, end in zip(wire.targets, ends, strict=True):
            if _is_node(layout, target):
                shapes += [Line(end, row, end, heads), Arrow(end, heads, "down")]
            else:
                shapes.append(Line(end, row, end, heads))
    return heads + 1


async def graph_svg(
    flows: FlowService, flow_id: str, number: int | None, may_read: MayRead, language: str = ENGLISH
) -> str:
    """Return the graph of a stored flow as SVG with the states of a cycle, without a number the last, for a reader.

    Raises Refused for an unknown one.
    """
    flow = await flows.load(flow_id)
    plan = flows.plan_of(flow)
    if not isinstance(plan, Plan):
        raise Refused(
            "unknown_kind", Text.of("flow {flow_id!r} has node kinds that are not installed here.", flow_id=flow_id)
        )
    record = await load_cycle(flows, flow, number)
    # The flow may have been replaced since this cycle.
    if record is None or record.cycle.tasks.keys() != plan.nodes.keys():
        return chart_svg(draw_flow(plan, None, language))
    tasks = shown_tasks(record.cycle.tasks, hidden_nodes(record.document, may_read))
    return chart_svg(draw_flow(plan, replace(record.cycle, tasks=tasks), language))
