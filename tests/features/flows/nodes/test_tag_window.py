"""`tag.window` reads the samples of the last seconds."""

import pytest

from edge.features.flows.nodes.outside import SampleWindow
from edge.features.flows.nodes.tag_window import KIND
from tests.features.flows.nodes.attempts import NOW, configure, request


def test_request_of_an_attempt() -> None:
    config = {"tag": "t", "seconds": 2.5}
    assert configure(KIND, config) == []
    assert request(KIND, config) == SampleWindow("t", NOW - 2500, NOW, with_time=False)


@pytest.mark.parametrize("config", [{"tag": "t"}, {"tag": "t", "seconds": -1}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)
