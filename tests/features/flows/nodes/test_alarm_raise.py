"""`alarm.raise` raises an alarm of a severity."""

import pytest

from edge.features.flows.nodes.alarm_raise import KIND
from edge.features.flows.nodes.outside import RaiseAlarm
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"alarm": "cmk", "severity": 500}
    assert configure(KIND, config) == []
    assert request(KIND, config, 5) == RaiseAlarm("flow", "cmk", 500, "", 5)


@pytest.mark.parametrize(
    "config", [{"alarm": "cmk"}, {"alarm": "cmk", "severity": 0}, {"alarm": "cmk", "severity": 1001}]
)
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)


def test_kind_does_not_run_again_after_an_interruption() -> None:
    assert not KIND.repeatable
