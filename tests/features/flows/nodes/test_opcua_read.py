"""`opcua.read` reads a variable of the equipment."""

import pytest

from edge.features.flows.nodes.opcua_read import KIND
from edge.features.flows.nodes.outside import VariableValue
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"equipment": "wrench", "node": "i=85"}
    assert configure(KIND, config) == []
    assert request(KIND, config) == VariableValue("wrench", "i=85")


@pytest.mark.parametrize("config", [{"node": "i=85"}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)
