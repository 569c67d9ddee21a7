"""Bolts of a flow are tightened at a separate controller, as killed gateways leave sessions at the device."""

# ruff: noqa: F811 - the argument `line` is the fixture of that name

import json
from typing import Any

import pytest

from tests.outside.servers import wait_for
from tests.outside.test_opcua_devices import TIGHTEN, Line, line  # noqa: F401 - the fixture

pytestmark = pytest.mark.slow


def _calibrate(line: Line, flow: str) -> None:
    """Start a flow that tightens one bolt, and wait until the spindle turns."""
    before = line.controller.count("started")
    torque = {"id": "bolt", "kind": "constant", "config": {"value": {"joining_process_id": "rear axle 85Nm"}}}
    command = {"id": "command", "kind": "equipment.command", "config": {"equipment": "wrench", "type_id": TIGHTEN}}
    file = line.gateway.directory / f"{flow}.json"
    document = {"id": flow, "interval_seconds": 0, "nodes": [torque, command], "edges": [["bolt", "command"]]}
    file.write_text(json.dumps(document))
    line.gateway.cli("flows", "put", str(file), "--start")
    line.controller.wait_for("started", before + 1)


def _node(line: Line, flow: str) -> Any:
    """Return the status of the node that tightens, with its output."""
    shown = json.loads(line.gateway.cli("flows", "show", flow, "--json"))
    return next(node for node in shown["cycle"]["nodes"] if node["node"] == "command")


def test_bolt_of_a_flow_is_counted_after_a_connection_loss(line: Line) -> None:
    """A command of no job is looked for at the new connection, too."""
    before = line.controller.count("started")
    _calibrate(line, "cut-off")
    line.controller.cut(1500)
    wait_for(lambda: _node(line, "cut-off")["status"] == "completed", "the node has its result")
    assert "85.2" in str(_node(line, "cut-off"))
    assert line.controller.count("started") == before + 1


def test_bolt_of_a_flow_is_kept_as_late_result_after_a_gateway_kill(line: Line) -> None:
    """The node is interrupted; its bolt is a late result, and is not tightened again."""
    before, finished = line.controller.count("started"), line.controller.count("finished")
    line.controller.order("hold")
    _calibrate(line, "killed-flow")
    line.gateway.kill()
    # Before the gateway is back: it would stop the bolt.
    line.controller.order("end")
    line.controller.wait_for("finished", finished + 1)
    line.gateway.start()
    wait_for(lambda: _node(line, "killed-flow")["status"] == "failed", "the node is interrupted")
    wait_for(lambda: "killed-flow_0_command" in line.gateway.cli("dead-letters", "list", "--json"), "the bolt is kept")
    assert line.controller.count("started") == before + 1
