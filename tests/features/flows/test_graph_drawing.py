"""A drawing shows every node with its kind, state and reason, as text and as SVG."""

import itertools
import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.drawing.svg import chart_svg
from edge.drawing.text import PLAIN, chart_text
from edge.features.flows import graph
from edge.features.flows.graph_drawing import GAP, GraphLayout, Wire, draw_flow, lay_out
from edge.features.flows.ports.tags import SampleHistory
from edge.features.flows.trial import TrialInput, run_trial
from tests.features.flows.documents import flow, node, plan_of

TWO_COMPONENTS = flow(
    [
        node("values", "constant", value=[1.0, 2.0]),
        node("mean", "aggregate", of="mean"),
        node("post", "fail", message="status 503"),
        node("after", "delay", seconds=1),
        node("lone", "constant", value=None),
    ],
    "values>mean mean>post post>after",
)


def text_of(document: dict[str, Any], *, runs: bool = True, terminated: str = "") -> str:
    plan = plan_of(document)
    given_input = TrialInput(SampleHistory({}), terminated={0: frozenset({terminated} - {""})})
    cycle = next(run_trial(plan, given_input, 1, 0)) if runs else None
    return "\n".join(chart_text(draw_flow(plan, cycle), PLAIN))


def test_states_reasons_and_outputs_are_shown() -> None:
    text = text_of(TWO_COMPONENTS)
    for expected in ("flow  cycle 0  failed", "component 1", "status 503", "dependency_failed", "1.5", "[1.0,2.0]"):
        assert expected in text
    assert text.count("completed") == 3
    assert "terminated" in text_of(TWO_COMPONENTS, terminated="mean")


def test_flow_without_a_cycle_shows_its_kinds_only() -> None:
    text = text_of(TWO_COMPONENTS, runs=False)
    assert "aggregate" in text
    assert "completed" not in text


def test_chain_is_drawn_from_top_to_bottom() -> None:
    document = flow([node("a", "constant", value=1), node("b", "delay", seconds=0)], "a>b")
    assert text_of(document, runs=False).split("\n")[2:] == [
        "┌───────────┐",
        "│     a     │",
        "│ constant  │",
        "└─────┬─────┘",
        "      │",
        "      ▼",
        "  ┌───────┐",
        "  │   b   │",
        "  │ delay │",
        "  └───────┘",
    ]


@given(st.lists(st.text(min_size=1, max_size=200), min_size=1, max_size=4, unique=True))
def test_any_id_of_a_node_is_drawn(ids: list[str]) -> None:
    document = flow([node(identifier, "constant", value=identifier) for identifier in ids])
    plan = plan_of(document)
    drawing = draw_flow(plan, next(run_trial(plan, TrialInput(SampleHistory({})), 1, 0)))
    ET.fromstring(chart_svg(drawing))  # noqa: S314 - it is our own document
    assert all(line.isprintable() for line in chart_text(drawing, PLAIN))


@pytest.mark.parametrize("count", [1, 30])
def test_wide_and_deep_flows_fit_their_drawing(count: int) -> None:
    nodes = [node(f"n{number}", "constant", value=number) for number in range(count)]
    nodes += [node(f"d{number}", "merge") for number in range(count)]
    edges = " ".join(f"n{number}>d{number}" for number in range(count))
    edges += "".join(f" d{number}>d{number + 1}" for number in range(count - 1))
    assert text_of(flow(nodes, edges)).count("completed") == 2 * count + 1


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
    return any(layout.centres[target] != layout.centres[wire.source] for target in wire.targets)


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
    assert layout.centres[above.source] in {layout.centres[target] for target in other.targets}
    assert above.row < other.row
