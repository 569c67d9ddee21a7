"""A flow document becomes a plan, or the list of all its faults."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from edge.features.flows.nodes.registry import BUILT_IN
from edge.features.flows.plan import Plan, Plans, Rejected, plan_flow
from tests.features.flows.documents import flow, node, plan_of


def faults_of(document: object) -> list[tuple[str, object]]:
    planned = plan_flow(document)
    assert isinstance(planned, Rejected)
    return [(fault.kind.value, fault.where) for fault in planned.faults]


def one(node_id: str, **members: Any) -> dict[str, Any]:
    return {"id": node_id, "kind": "constant", "config": {"value": 1}, **members}


def test_structure_is_sorted_by_code_point() -> None:
    document = flow([node("c", "merge"), node("b", "delay", seconds=1), one("a"), one("Z")], "a>b")
    plan = plan_of(document)
    assert plan.components == (("Z",), ("a", "b"), ("c",))
    assert plan.entry_nodes == ("Z", "a", "c")
    assert plan.layers == (("Z", "a", "c"), ("b",))


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (flow([]), [("empty", "nodes")]),
        (flow([node("a", "merge"), node("b", "merge")], "a>b b>a"), [("cycle", ("a", "b"))]),
        (flow([node("a", "merge")], "a>a"), [("cycle", ("a",))]),
        (
            flow([node(word, "merge") for word in "abcde"], "a>b b>a b>c c>d d>c d>e"),
            [("cycle", ("a", "b")), ("cycle", ("c", "d"))],
        ),
        (
            flow([one("a")], "a>x x>a x>y"),
            [("unknown_node", "a->x"), ("unknown_node", "x->a"), ("unknown_node", "x->y"), ("port_mismatch", "a")],
        ),
        (flow([node("a", "nothing")]), [("unknown_kind", "a")]),
        (flow([{"id": "a"}]), [("unknown_kind", "a")]),
        (flow([one("a"), one("a"), one("a")]), [("duplicate_node", "a")]),
        (flow([one("a"), node("b", "merge")], "a>b a>b"), [("duplicate_edge", "a->b")]),
        (flow([one("a"), node("b", "delay", seconds=1)], "a>b a>b"), [("duplicate_edge", "a->b")]),
        (flow([one("a"), one("b")], "a>b"), [("port_mismatch", "b")]),
        (flow([node("a", "delay", seconds=1)]), [("port_mismatch", "a")]),
        (flow([one("a"), one("b"), node("c", "changed")], "a>c b>c"), [("port_mismatch", "c")]),
        (flow([node("a", "constant")]), [("invalid_config", "a")]),
        (flow([node("a", "constant", value=1, more=2)]), [("invalid_config", "a")]),
        (flow([one("a", retries=-1)]), [("invalid_config", "a")]),
        (flow([one("a", retries=1.5)]), [("invalid_config", "a")]),
        (flow([one("a", retries=True)]), [("invalid_config", "a")]),
        (flow([one("a", timeout_seconds=0)]), [("invalid_config", "a")]),
        (flow([one("a", timeout_seconds=None)]), [("invalid_config", "a")]),
        (flow([one("a", more=1)]), [("invalid_config", "a")]),
        (flow([node("e", "expression", expr="x + 1")]), [("invalid_config", "e")]),
        (flow([{"kind": "merge"}, one("")]), [("invalid_config", "nodes[0]"), ("invalid_config", "nodes[1]")]),
        (flow([one("x" * 201)]), [("invalid_config", "nodes[0]")]),
        ({**flow([one("a")]), "edges": [["a"], 5]}, [("invalid_config", "edges[0]"), ("invalid_config", "edges[1]")]),
        ({**flow([one("a")]), "edges": 5}, [("invalid_config", "flow")]),
        ({**flow([one("a")]), "id": "", "more": 1}, [("invalid_config", "flow"), ("invalid_config", "flow")]),
        ({**flow([]), "nodes": 5}, [("invalid_config", "nodes")]),
        (flow([one("a")], cron="no cron"), [("invalid_schedule", "schedule")]),
        (5, [("invalid_config", "flow")]),
    ],
)
def test_fault_is_reported_with_its_place(document: object, expected: list[tuple[str, object]]) -> None:
    assert faults_of(document) == expected


def test_all_faults_are_reported_at_once() -> None:
    document = flow([node("a", "merge"), node("b", "nothing"), one("c", retries=-1)], "a>a b>x", cron="x")
    kinds = [kind for kind, _ in faults_of(document)]
    assert sorted(kinds) == ["cycle", "invalid_config", "invalid_schedule", "unknown_kind", "unknown_node"]


def test_node_without_limits_has_one_attempt_without_timeout() -> None:
    planned = plan_of(flow([one("a"), one("b", retries=2, timeout_seconds=0.5)])).nodes
    assert (planned["a"].retries, planned["a"].timeout_ms) == (0, None)
    assert (planned["b"].retries, planned["b"].timeout_ms) == (2, 500)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
odd_nodes = st.fixed_dictionaries(
    {},
    optional={
        "id": st.sampled_from(["a", "b", "", 5]) | json_values,
        "kind": st.sampled_from(["constant", "merge", "delay", "expression", "x"]) | json_values,
        "config": st.sampled_from([{}, {"value": 1}, {"seconds": 1}, {"expr": "a"}]) | json_values,
        "retries": json_values,
        "timeout_seconds": json_values,
    },
)
odd_flows = st.fixed_dictionaries(
    {},
    optional={
        "id": json_values,
        "nodes": st.lists(odd_nodes, max_size=5) | json_values,
        "edges": st.lists(st.lists(st.sampled_from(["a", "b", "c"]), max_size=3), max_size=5) | json_values,
        "interval_seconds": json_values,
        "cron": json_values,
        "shifts": json_values,
        "time_zone": json_values,
        "catch_up": json_values,
    },
)


@given(odd_flows | json_values)
def test_random_document_is_planned_or_refused_with_its_faults(document: object) -> None:
    match plan_flow(document):
        case Rejected(faults=faults):
            assert faults
            assert all(fault.message for fault in faults)
        case Plan(nodes=nodes, layers=layers):
            assert sorted(nodes) == sorted(text for layer in layers for text in layer)


class _UnprintableError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def _raise(error: Exception) -> list[str]:
    raise error


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (lambda _config, _sources: _raise(ZeroDivisionError("by zero")), "failed: ZeroDivisionError: by zero"),
        (lambda _config, _sources: _raise(_UnprintableError()), "failed: "),
        (lambda _config, _sources: None, "failed: TypeError"),
        (lambda _config, _sources: [5], "5"),
    ],
)
def test_failing_check_of_a_site_kind_is_a_fault_of_the_flow(check: Any, message: str) -> None:
    kind = replace(BUILT_IN["constant"], name="site.x", in_worker=True, faults=check)
    planned = plan_flow(flow([node("a", "site.x", value=1)]), {"site.x": kind})
    assert isinstance(planned, Rejected)
    assert [(fault.kind.value, fault.where) for fault in planned.faults] == [("invalid_config", "a")]
    assert message in planned.faults[0].message


def test_document_is_planned_once() -> None:
    plans = Plans()
    text = json.dumps(flow([node("a", "constant", value=1)]))
    found = plans.of(text)
    assert isinstance(found, Plan)
    assert plans.of(text) is found


def test_faults_of_a_document_are_returned() -> None:
    assert isinstance(Plans().of(json.dumps(flow([node("a", "nothing")]))), Rejected)


def test_unused_plans_are_dropped() -> None:
    plans = Plans()
    first = plans.of(json.dumps(flow([node("a", "constant", value=-1)])))
    for value in range(1000):
        plans.of(json.dumps(flow([node("a", "constant", value=value)])))
    assert plans.of(json.dumps(flow([node("a", "constant", value=-1)]))) is not first
