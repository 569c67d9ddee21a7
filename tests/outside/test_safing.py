"""A disconnected tool is reset when it reconnects, regardless of the state of the job."""

import pytest

from tests.outside.conftest import Plant
from tests.outside.plant import TIGHTEN, Wrench
from tests.outside.servers import PREFIX, wait_for

pytestmark = pytest.mark.slow

PUSH = {"name": "clamp", "interaction": "push_command", "type_id": TIGHTEN}
SCAN = {"name": "scan", "step": "Wait", "qualifier": "N", "interaction": "pull_event", "type_id": "scan.v1"}
CLAMPING = {
    "steps": [{"name": "Clamp", "initial": True}, {"name": "Wait"}, {"name": "Open"}],
    "transitions": [
        {"source": "Clamp", "target": "Wait", "condition": "actions.clamp.done"},
        {"source": "Wait", "target": "Open", "condition": "actions.scan.done"},
    ],
    "actions": [PUSH | {"step": "Clamp", "qualifier": "S"}, SCAN, PUSH | {"step": "Open", "qualifier": "R"}],
}


def phases(wrench: Wrench) -> list[str]:
    return [command.attributes["phase"] for command in list(wrench.commands)]


def test_reset_of_a_disconnected_tool_is_sent_when_it_reconnects(plant: Plant) -> None:
    plant.mes.configure(recipe=CLAMPING)
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(lambda: phases(plant.wrench) == ["start"], "the tool clamps")
    wait_for(lambda: "scan" in plant.gateway.cli("jobs", "why", "J1"), "the job waits for the scan")
    plant.wrench.client.close()
    assert plant.mes.call("Abort", {"JobOrderID": "J1"}).status == 1
    plant.mes.wait_for_state("J1", "Aborted", 60)
    plant.gateway.kill()
    plant.gateway.start()
    wait_for(lambda: "the tool may still be active" in plant.gateway.cli("equipment", "show", "wrench"), "the alarm")
    wait_for(lambda: "gateway.tool_may_be_active" in plant.gateway.cli("alarms", "list", "--json"), "its alarm")
    returned = Wrench(plant.broker.port)
    returned.open()
    presence = f"{PREFIX}/equipment/wrench/presence"
    returned.client.publish(presence, "online", {}, retain=True)
    returned.client.wait(lambda: "reset" in phases(returned), "the tool is reset", 60)
    returned.client.close()
    assert "start" not in phases(returned)
