"""A query or an action is passed to its handler; without a handler the node fails with the reason."""

from typing import Any

import pytest

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import LatestValue, PublishMessage, RaiseAlarm
from edge.features.flows.ports.table import HandlerTable


async def echo(asked: object, task_id: str) -> Any:
    return [type(asked).__name__, task_id]


async def test_each_type_has_its_handler() -> None:
    table = HandlerTable({LatestValue: echo, PublishMessage: echo})
    assert await table.read(LatestValue("t", 5)) == ["LatestValue", ""]
    assert await table.act(PublishMessage("x", retain=False, value=1), "flow_0_n") == ["PublishMessage", "flow_0_n"]


async def test_request_without_a_handler_fails_the_node() -> None:
    table = HandlerTable({})
    with pytest.raises(NodeError, match="does not serve alarms"):
        await table.act(RaiseAlarm("flow", "a", 500, "", 1), "t")
    with pytest.raises(NodeError, match="does not serve tags"):
        await table.read(LatestValue("t", 5))
