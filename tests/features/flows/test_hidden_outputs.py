"""The outputs of nodes that have values of a hidden tag are left out."""

import json

from edge.features.flows.cycle import NodeStatus, NodeTask
from edge.features.flows.hidden_outputs import hidden_nodes, may_read_all, shown_tasks
from tests.features.flows.documents import flow, node


def _may_read(tag: str) -> bool:
    return tag != "dose"


def test_node_behind_a_hidden_tag_is_hidden_and_another_is_not() -> None:
    nodes = [
        node("a", "tag.window", tag="dose", seconds=1),
        node("b", "aggregate", function="mean"),
        node("c", "merge"),
        node("d", "constant", value=1),
    ]
    document = json.dumps(flow(nodes, "a>b b>c d>c"))
    assert hidden_nodes(document, _may_read) == {"a", "b", "c"}
    assert hidden_nodes(document, may_read_all) == set()


def test_value_that_is_written_to_a_hidden_tag_is_hidden() -> None:
    nodes = [
        node("a", "constant", value=1),
        node("b", "expression", expr="input"),
        node("w", "tag.write", tag="dose"),
        node("p", "mqtt.publish", topic="x"),
    ]
    assert hidden_nodes(json.dumps(flow(nodes, "a>b b>w b>p")), _may_read) == {"b", "w", "p"}


def test_tag_in_the_configuration_of_a_site_kind_is_found() -> None:
    nodes = [node("a", "site.kind", inputs=[{"of": "dose"}])]
    assert hidden_nodes(json.dumps(flow(nodes)), _may_read) == {"a"}


def test_reason_of_a_hidden_failure_is_left_out() -> None:
    tasks = {
        "a": NodeTask(NodeStatus.FAILED, reason="7.5 is not a text"),
        "b": NodeTask(NodeStatus.SKIPPED, reason="a failed"),
        "c": NodeTask(NodeStatus.COMPLETED, output=7.5),
    }
    shown = shown_tasks(tasks, frozenset("abc"))
    assert [(task.output, task.reason) for task in shown.values()] == [(None, None), (None, "a failed"), (None, None)]
    assert shown_tasks(tasks, frozenset()) == tasks
