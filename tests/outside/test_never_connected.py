"""Equipment that was never connected: the reason is shown, and a command that never left leaves no tool in doubt."""

import json
from datetime import datetime
from typing import Any

import pytest

from tests.free_ports import free_port
from tests.outside.conftest import Plant
from tests.outside.servers import wait_for
from tests.outside.test_decisions import _edge

pytestmark = pytest.mark.slow

TYPE = "com.example.never.v1"
RECIPE = {
    "steps": [{"name": "Work", "initial": True}, {"name": "Done"}],
    "transitions": [{"source": "Work", "target": "Done", "condition": "actions.work.done"}],
    "actions": [
        {
            "name": "work",
            "step": "Work",
            "qualifier": "N",
            "interaction": "push_command",
            "type_id": TYPE,
            "timeout_seconds": 5,
        }
    ],
}
ALARM_AFTER_S = 12
"""The alarm of a tool that may be active comes after ten seconds without a confirmation."""


def _reported(plant: Plant) -> dict[str, Any]:
    found: list[dict[str, Any]] = json.loads(_edge(plant, "equipment", "list", "--json").stdout)
    return next((entry for entry in found if entry["name"] == "op"), {})


def _has_all(parts: set[str], text: str) -> bool:
    return all(part in text for part in parts)


def test_command_that_never_left_is_not_sent_and_raises_no_alarm(plant: Plant) -> None:
    settings, port = plant.gateway.settings, free_port()
    section = f'[southbound.op]\nkind = "openprotocol"\ntype_ids = ["{TYPE}"]\nurl = "tcp://127.0.0.1:{port}"\n'
    settings.write_text(f"{settings.read_text()}\n{section}")
    plant.gateway.stop()
    plant.gateway.start()
    plant.mes.configure(recipe=RECIPE)
    wait_for(lambda: _reported(plant).get("connected") is False, "the state of the equipment")
    connection = _reported(plant)["connection"]
    assert connection["fault"] == "refused"
    assert f"127.0.0.1:{port}" in connection["reason"]
    assert plant.mes.start_job("J1").status == 1
    reasons = {"not sent yet", "not connected: refused: "}
    wait_for(lambda: _has_all(reasons, _edge(plant, "jobs", "why", "J1").stdout), "the command waits, and why")
    assert "not connected: refused: " in _edge(plant, "doctor").stdout
    plant.mes.wait_for_state("J1", "Aborted", 60)
    wait_for(lambda: "never sent" in json.dumps(plant.mes.result("J1")), "the reason in the job response")
    shown = json.loads(_edge(plant, "jobs", "show", "J1", "--json").stdout)
    (action,) = shown["actions"]
    assert (action["state"], action["sent_at"]) == ("timed_out", None)
    ended = datetime.fromisoformat(action["ended_at"])

    def is_later() -> bool:
        raised = json.loads(_edge(plant, "alarms", "list", "--json").stdout)
        assert not [value for value in raised if value["rule"] == "gateway.tool_may_be_active"]
        return (datetime.now(ended.tzinfo) - ended).total_seconds() > ALARM_AFTER_S

    wait_for(is_later, "the time within which a stop has to be confirmed")
    assert _reported(plant)["safing"] == 0
