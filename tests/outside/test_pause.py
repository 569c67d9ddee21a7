"""Pause and Resume reach a tool that supports them."""

import jsonschema
import pytest

from tests.outside.conftest import Plant
from tests.outside.test_equipment_examples import schema


@pytest.mark.slow
def test_pause_and_resume_reach_a_tool_that_supports_them(plant: Plant) -> None:
    _start_with_pause(plant)
    for method, phase in (("Pause", "pause"), ("Resume", "resume"), ("Pause", "pause")):
        assert plant.mes.call(method, {"JobOrderID": "J1"}).status == 1
        plant.wrench.client.wait(lambda: _phases(plant)[-1] == phase, f"the tool has the {phase}", 60)  # noqa: B023
    assert _phases(plant) == ["start", "pause", "resume", "pause"]
    assert len({command.attributes["id"] for command in plant.wrench.commands}) == 1
    for received in plant.wrench.commands:
        jsonschema.validate(received.attributes, schema("command.attributes"))
    assert plant.mes.call("Resume", {"JobOrderID": "J1"}).status == 1
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 60)


@pytest.mark.slow
def test_pause_of_the_command_line_reaches_the_tool(plant: Plant) -> None:
    _start_with_pause(plant)
    for command in ("pause", "resume"):
        plant.gateway.cli("jobs", command, "J1")
        plant.wrench.client.wait(lambda: _phases(plant)[-1] == command, f"the tool has the {command}", 60)  # noqa: B023
        assert "not sent yet" not in plant.gateway.cli("jobs", "why", "J1")
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 60)


def test_tool_without_pause_capability_receives_no_pause(plant: Plant) -> None:
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)
    assert plant.mes.call("Pause", {"JobOrderID": "J1"}).status == 1
    assert plant.mes.call("Resume", {"JobOrderID": "J1"}).status == 1
    plant.wrench.release()
    plant.mes.wait_for_state("J1", "Ended", 60)
    assert _phases(plant) == ["start"]


def _start_with_pause(plant: Plant) -> None:
    """Start a job on a tool that supports pauses."""
    settings = plant.gateway.settings
    settings.write_text(settings.read_text().replace("[southbound.wrench]", '[southbound.wrench]\npause = "on"'))
    plant.gateway.stop()
    plant.gateway.start()
    plant.wrench.holds = True
    assert plant.mes.start_job("J1").status == 1
    plant.wrench.client.wait(plant.wrench.starts, "the tool has the command", 60)


def _phases(plant: Plant) -> list[str]:
    return [command.attributes["phase"] for command in list(plant.wrench.commands)]
