"""A valid flow with added faults is refused with all of them; an accepted flow runs to its end."""

import copy
from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from edge.features.flows.cycle import CycleStatus
from edge.features.flows.plan import Plan, Rejected, plan_flow
from edge.features.flows.ports.tags import SampleHistory
from edge.features.flows.trial import TrialInput, public_trial, run_trial
from tests.features.flows.documents import flow, node

SOUND = flow(
    [
        node("values", "tag.window", tag="t", seconds=60),
        node("mean", "aggregate", of="mean"),
        node("low", "switch", when="input < 3"),
        node("text", "template", text="Mean {mean}"),
        node("join", "merge"),
        node("send", "mqtt.publish", topic="plant/mean"),
        node("later", "delay", seconds=0.5),
    ],
    "values>mean mean>low mean>text low>join text>join join>send low>later",
)
Document = dict[str, Any]


def _of(document: Document, name: str) -> Document:
    found: Document = next(value for value in document["nodes"] if value["id"] == name)
    return found


def _edge(*pair: str) -> Callable[[Document], None]:
    return lambda document: document["edges"].append(list(pair))


def _config(name: str, **config: Any) -> Callable[[Document], None]:
    return lambda document: _of(document, name)["config"].update(config)


def _member(name: str, member: str, value: object) -> Callable[[Document], None]:
    return lambda document: _of(document, name).update({member: value})


FAULTS: list[tuple[str, object, Callable[[Document], None]]] = [
    # The edge that closes the cycle is an input too much of no node: a merge takes any number.
    ("cycle", ("join", "send"), _edge("send", "join")),
    ("unknown_node", "mean->nowhere", _edge("mean", "nowhere")),
    ("unknown_node", "nowhere->join", _edge("nowhere", "join")),
    ("duplicate_edge", "values->mean", _edge("values", "mean")),
    ("port_mismatch", "values", _edge("text", "values")),
    ("port_mismatch", "later", _edge("text", "later")),
    ("unknown_kind", "text", _member("text", "kind", "templates")),
    ("invalid_config", "mean", _config("mean", of="average")),
    ("invalid_config", "low", _config("low", when="input <")),
    ("invalid_config", "send", _config("send", topic="plant/#")),
    ("invalid_config", "later", _config("later", seconds=-1)),
    ("invalid_config", "values", _member("values", "retries", -1)),
    ("invalid_config", "join", _member("join", "timeout_seconds", 0)),
    ("invalid_config", "flow", lambda document: document.update(colour="red")),
    ("duplicate_node", "mean", lambda document: document["nodes"].append(node("mean", "merge"))),
    ("invalid_schedule", "schedule", lambda document: document.update(cron="x")),
]


def test_valid_flow_has_no_faults() -> None:
    assert isinstance(plan_flow(SOUND), Plan), plan_flow(SOUND)


@given(st.sets(st.sampled_from(range(len(FAULTS))), min_size=1))
def test_every_fault_of_a_flow_is_reported_at_once(chosen: set[int]) -> None:
    document = copy.deepcopy(SOUND)
    for number in sorted(chosen):
        FAULTS[number][2](document)
    found = plan_flow(document)
    assert isinstance(found, Rejected)
    reported = {(fault.kind.value, fault.where) for fault in found.faults}
    missing = {FAULTS[number][:2] for number in chosen} - reported
    assert missing == set()
    assert len(found.faults) >= len(chosen)


def nodes_of(count: int) -> st.SearchStrategy[list[Document]]:
    kinds = st.sampled_from(
        [
            ("merge", {}),
            ("fail", {"times": 1}),
            ("fail", {}),
            ("expression", {"expr": "1 / 0"}),
            ("expression", {"expr": "input"}),
            ("template", {"text": "{input}"}),
            ("constant", {"value": [1, None, "x"]}),
            ("aggregate", {"of": "mean"}),
            ("aggregate", {"of": "rate"}),
            ("capability", {"lsl": 0, "usl": 1}),
            ("changed", {}),
            ("switch", {"when": "input > 1"}),
            ("delay", {"seconds": 10}),
            ("tag.write", {"tag": "t"}),
            ("http.get", {"url": "http://127.0.0.1/"}),
        ]
    )
    one = st.tuples(kinds, st.integers(0, 2), st.sampled_from([None, 0.001, 5]))
    return st.lists(one, min_size=count, max_size=count).map(
        lambda found: [
            {"id": f"n{number}", "kind": kind, "config": config, "retries": retries}
            | ({"timeout_seconds": timeout} if timeout else {})
            for number, ((kind, config), retries, timeout) in enumerate(found)
        ]
    )


@st.composite
def flows(draw: st.DrawFn) -> Document:
    nodes = draw(st.integers(1, 7).flatmap(nodes_of))
    ids = [entry["id"] for entry in nodes]
    pairs = st.tuples(st.sampled_from(ids), st.sampled_from(ids)).filter(lambda pair: pair[0] < pair[1])
    edges = draw(st.lists(pairs, max_size=8, unique=True)) if len(ids) > 1 else []
    return {"id": "f", "interval_seconds": 1, "nodes": nodes, "edges": [list(edge_) for edge_ in edges]}


@given(flows())
def test_flow_is_refused_or_runs_to_completion(document: Document) -> None:
    plan = plan_flow(document)
    if isinstance(plan, Rejected):
        assert plan.faults
        return
    for cycle in run_trial(plan, TrialInput(SampleHistory({})), 3, 0):
        assert cycle.status is not CycleStatus.RUNNING
        assert all(task.has_ended for task in cycle.tasks.values())
        assert public_trial(cycle).status == cycle.status.value
