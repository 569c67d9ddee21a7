"""Node tasks are decoded unchanged."""

import json

import pytest

from edge.features.flows import node_task
from edge.features.flows.cycle import NodeStatus, NodeTask
from edge.features.flows.nodes.kind import Withheld
from edge.foundation.text import Text


@pytest.mark.parametrize(
    "task",
    [
        NodeTask(),
        NodeTask(NodeStatus.RUNNING, attempts=2, started_at=5),
        NodeTask(NodeStatus.COMPLETED, {"a": [1, 2.5, None]}, Withheld.UNCHANGED, None, 1, 5, 6, {"value": 0}),
        NodeTask(NodeStatus.FAILED, reason="no connection", attempts=3),
        NodeTask(NodeStatus.FAILED, reason=Text.of("{url}: status {code}", url="http://plc/", code=500), attempts=1),
    ],
)
def test_node_task_survives_encoding_and_decoding(task: NodeTask) -> None:
    texts = node_task.encode("flow", 3, "node", task)
    assert texts.output is None
    assert not node_task.has_large_output(texts.task)
    assert node_task.decode(texts.task, None) == task
    shown = json.loads(texts.task)
    assert (shown["flow_id"], shown["cycle"], shown["node_id"], shown["status"]) == ("flow", 3, "node", task.status)


def test_large_output_is_stored_separately() -> None:
    task = NodeTask(NodeStatus.COMPLETED, "v" * 65_535)
    texts = node_task.encode("flow", 3, "node", task)
    assert json.loads(texts.task)["output_bytes"] == 65_537
    assert node_task.has_large_output(texts.task)
    assert node_task.decode(texts.task, texts.output) == task
    assert node_task.decode(texts.task, None).output is None


def test_reason_of_an_older_release_is_read_as_it_stands() -> None:
    text = node_task.encode("flow", 3, "node", NodeTask(NodeStatus.FAILED, reason="no connection")).task
    assert "text" not in json.loads(text)
    assert node_task.decode(text, None).reason_in("de") == "no connection"
