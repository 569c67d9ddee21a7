"""Places the nodes of a flow on a grid: layers from top to bottom, with few crossings, and the ways of the edges."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

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
        found = [places[each] for each in neighbours.get(point, ())]
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
        wanted = [[centres[each] for each in sources.get(point, ())] for point in layer]
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
    bent = [point for point in targets if any(centres[each] != centres[point] for each in targets[point])]
    ends = {point: {centres[each] for each in targets[point]} for point in bent}
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
