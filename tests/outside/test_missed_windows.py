"""A command whose time passed while the gateway was dead starts nothing, and response and history say so."""

import time
from typing import Any

import pytest

from tests.outside.conftest import Plant
from tests.outside.mqtt_client import MqttClient
from tests.outside.plant import TIGHTEN
from tests.outside.servers import wait_for

pytestmark = pytest.mark.slow

PUSH = {"name": "drill", "interaction": "push_command", "type_id": TIGHTEN}
LATE_S = 3.0
WINDOW_S = 2.0
LIMIT_S = 6.0
DELAYED = {
    "steps": [{"name": "Work", "initial": True}, {"name": "Done"}],
    "transitions": [{"source": "Work", "target": "Done", "condition": f"steps.Work.T > {LATE_S + WINDOW_S}s"}],
    "actions": [PUSH | {"step": "Work", "qualifier": "D", "duration_seconds": LATE_S}],
}
"""The drill starts after a delay, and is to stop when its step is left."""
LIMITED = {
    "steps": [{"name": "Wait", "initial": True}, {"name": "Work"}, {"name": "Done"}],
    "transitions": [
        {"source": "Wait", "target": "Work", "condition": f"steps.Wait.T > {LATE_S}s"},
        {"source": "Work", "target": "Done", "condition": "always"},
    ],
    "actions": [PUSH | {"step": "Work", "qualifier": "L", "duration_seconds": LIMIT_S}],
}
"""The drill works for a limited time, after a while."""


def phases(plant: Plant) -> list[str]:
    """Return what the tool has received."""
    return [command.attributes["phase"] for command in list(plant.wrench.commands)]


def wait_until(instant: float) -> None:
    """Wait for an instant of the steady clock of this computer."""
    wait_for(lambda: time.monotonic() >= instant, "the time passes")


def wait_for_the_return(client: MqttClient) -> None:
    """Wait until a client has lost its connection and connected again by itself."""
    client.wait(lambda: client.disconnects and client.connected, "it has connected again")


def response(plant: Plant, name: str) -> Any:
    """Return a parameter of the retained response of J1 by its id; None where it has none."""
    found = plant.mes.result("J1") or {}
    return next((value for value in found.get("JobResponseData", []) if value["ID"] == name), None)


def reason_in(parameter: Any) -> str:
    (action,) = parameter["Subparameters"]
    assert action["ID"] == "drill"
    return str(action["Value"])


def test_window_that_passed_while_the_gateway_was_dead_is_reported(plant: Plant) -> None:
    """It is killed before the delay of the command has passed, and started when the step should have been left."""
    plant.mes.configure(recipe=DELAYED)
    assert plant.mes.start_job("J1").status == 1
    started = time.monotonic()
    plant.gateway.kill()
    wait_until(started + LATE_S + 2 * WINDOW_S)
    plant.gateway.start()
    plant.mes.wait_for_state("J1", "Ended", 60)
    plant.mes.client.wait(lambda: response(plant, "NeverSent"), "the response says so", 60)
    reason = "never sent: its time passed before a gateway could send it"
    assert reason_in(response(plant, "NeverSent")) == reason
    (attempt,) = response(plant, "Attempts")["Subparameters"]
    assert {subparameter["ID"]: subparameter["Value"] for subparameter in attempt["Subparameters"]}.keys() == {
        "state",
        "end",
        "error",
    }
    assert f"drill 1 {reason}" in " ".join(plant.gateway.cli("jobs", "history", "J1").split())
    for command in ("why", "results"):
        assert "never sent: its time passed" in plant.gateway.cli("jobs", command, "J1")
    assert phases(plant) == []
    # Nothing was started: no tool is in doubt.
    wait_for(lambda: "may still be active" not in plant.gateway.cli("jobs", "why", "J1"), "no stop is open")


@pytest.mark.parametrize(
    ("repetition", "name", "received"), [("once", "NeverSent", []), ("recognisable", "MayHaveBeenSent", ["stop"])]
)
def test_start_whose_window_passed_before_the_restart_is_not_sent(
    plant: Plant, repetition: str, name: str, received: list[str]
) -> None:
    """The gateway is killed between its decision and the sending; its successor knows what the store says, no more."""
    plant.gateway.settings.write_text(f'{plant.gateway.settings.read_text()}repetition = "{repetition}"\n')
    plant.gateway.stop()
    plant.gateway.start()
    plant.mes.configure(recipe=LIMITED)
    assert plant.mes.start_job("J1").status == 1
    plant.broker.kill()
    wait_for(lambda: "command delayed" in plant.gateway.log.read_text(), "the command waits")
    decided = time.monotonic()
    plant.gateway.kill()
    wait_until(decided + LIMIT_S)
    plant.broker.start()
    wait_for_the_return(plant.mes.client)
    wait_for_the_return(plant.wrench.client)
    plant.gateway.start()
    plant.mes.wait_for_state("J1", "Ended", 60)
    plant.mes.client.wait(lambda: response(plant, name), "the response says so", 60)
    assert "its time passed before a gateway could send it" in reason_in(response(plant, name))
    plant.wrench.client.wait(lambda: len(phases(plant)) >= len(received), "the tool is stopped", 60)
    # A second job: whatever the gateway sends for the first one, it sends before this command.
    assert plant.mes.start_job("J2").status == 1
    plant.wrench.client.wait(lambda: phases(plant)[len(received) :] == ["start"], "the tool has the next command", 60)
    assert phases(plant) == [*received, "start"]
