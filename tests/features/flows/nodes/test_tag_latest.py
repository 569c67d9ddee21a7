"""`tag.latest` reads the last value until its start."""

import pytest

from edge.features.flows.nodes.outside import LatestValue
from edge.features.flows.nodes.tag_latest import KIND
from tests.features.flows.nodes.attempts import NOW, configure, request


def test_request_of_an_attempt() -> None:
    config = {"tag": "t"}
    assert configure(KIND, config) == []
    assert request(KIND, config) == LatestValue("t", NOW)


@pytest.mark.parametrize("config", [{}, {"tag": 5}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)
