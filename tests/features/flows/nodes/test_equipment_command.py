"""`equipment.command` sends a command to equipment."""

import pytest

from edge.features.flows.nodes.equipment_command import KIND
from edge.features.flows.nodes.outside import CommandEquipment
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"equipment": "lamp", "type_id": "set"}
    assert configure(KIND, config) == []
    assert request(KIND, config, 5) == CommandEquipment("lamp", "set", 5)


@pytest.mark.parametrize("config", [{"equipment": "lamp"}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)


def test_kind_does_not_run_again_after_an_interruption() -> None:
    assert not KIND.repeatable
