"""`opcua.write` writes its input to a variable."""

import pytest

from edge.features.flows.nodes.opcua_write import KIND
from edge.features.flows.nodes.outside import WriteVariable
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"equipment": "wrench", "node": "i=85"}
    assert configure(KIND, config) == []
    assert request(KIND, config, 5) == WriteVariable("wrench", "i=85", 5)


@pytest.mark.parametrize("config", [{"node": "i=85"}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)


def test_kind_does_not_run_again_after_an_interruption() -> None:
    assert not KIND.repeatable
