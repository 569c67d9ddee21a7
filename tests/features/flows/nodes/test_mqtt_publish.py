"""`mqtt.publish` publishes its input."""

import pytest

from edge.features.flows.nodes.mqtt_publish import KIND
from edge.features.flows.nodes.outside import PublishMessage
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"topic": "plant/mean"}
    assert configure(KIND, config) == []
    assert request(KIND, config, 5) == PublishMessage("plant/mean", retain=False, value=5)


@pytest.mark.parametrize("config", [{}, {"topic": ""}, {"topic": "a/+"}, {"topic": "a/#"}, {"topic": "a" * 65_536}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)


def test_kind_does_not_run_again_after_an_interruption() -> None:
    assert not KIND.repeatable
