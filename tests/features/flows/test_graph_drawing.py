"""A drawing shows every node with its kind, state and reason, as text and as SVG."""

import xml.etree.ElementTree as ET
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.chart.svg import chart_svg
from edge.chart.text import PLAIN, chart_text
from edge.features.flows.graph_drawing import draw_flow
from edge.features.flows.sample_history import SampleHistory
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
    document = flow([node(each, "constant", value=each) for each in ids])
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
