"""Nodes of a layer never overlap, edges lead down, and no edge runs over the end of another."""

import itertools

from hypothesis import given
from hypothesis import strategies as st

from edge.features.flows import graph
from edge.features.flows.graph_layout import GAP, GraphLayout, Wire, lay_out

NODES = [f"n{number}" for number in range(9)]


@st.composite
def graphs(draw: st.DrawFn) -> dict[str, tuple[str, ...]]:
    """Return the successors of an acyclic graph."""
    count = draw(st.integers(1, len(NODES)))
    pairs = [(a, b) for b in range(count) for a in range(b)]
    chosen = draw(st.sets(st.sampled_from(pairs))) if pairs else set()
    return {NODES[a]: tuple(NODES[b] for b in range(count) if (a, b) in chosen) for a in range(count)}


def layout_of(successors: dict[str, tuple[str, ...]]) -> GraphLayout:
    widths = {node: 5 + 2 * (number % 4) for number, node in enumerate(successors)}
    return lay_out(graph.layers(successors), successors, widths)


def is_bent(layout: GraphLayout, wire: Wire) -> bool:
    return any(layout.centres[each] != layout.centres[wire.source] for each in wire.targets)


@given(graphs())
def test_points_of_a_layer_keep_the_minimum_distance(successors: dict[str, tuple[str, ...]]) -> None:
    layout = layout_of(successors)
    for layer in layout.layers:
        places = [layout.centres[point] for point in layer]
        assert places == sorted(places)
        assert all(after - before > GAP for before, after in itertools.pairwise(places))
        assert all(0 <= place < layout.width for place in places)


@given(graphs())
def test_every_edge_is_a_path_through_the_layers(successors: dict[str, tuple[str, ...]]) -> None:
    layout = layout_of(successors)
    level = {node: number for number, layer in enumerate(graph.layers(successors)) for node in layer}
    steps = {wire.source: set(wire.targets) for wires in layout.wires for wire in wires}
    for source, targets in successors.items():
        for target in targets:
            points = [(target, number) for number in range(level[source] + 1, level[target] + 1)]
            before = (source, level[source])
            for point in points:
                assert point in steps[before]
                before = point


@given(graphs())
def test_each_wire_of_a_channel_has_its_own_row(successors: dict[str, tuple[str, ...]]) -> None:
    layout = layout_of(successors)
    for wires in layout.wires:
        rows = [wire.row for wire in wires if is_bent(layout, wire)]
        assert sorted(rows) == list(range(len(rows)))


def test_chain_is_a_straight_line() -> None:
    layout = layout_of({"a": ("b",), "b": ("c",), "c": ()})
    assert len({layout.centres[point] for layer in layout.layers for point in layer}) == 1


def test_wire_above_the_end_of_another_wire_has_a_row_above() -> None:
    layout = layout_of({"a": ("c", "d"), "b": ("e",), "c": (), "d": ("e",), "e": ()})
    by_source = {wire.source: wire for wire in layout.wires[0]}
    above, other = by_source["b", 0], by_source["a", 0]
    assert layout.centres[above.source] in {layout.centres[each] for each in other.targets}
    assert above.row < other.row
