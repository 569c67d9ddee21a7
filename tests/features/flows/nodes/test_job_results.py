"""`job.results` reads a member of the results of the last jobs."""

import pytest

from edge.features.flows.nodes.job_results import KIND
from edge.features.flows.nodes.outside import JobResults
from tests.features.flows.nodes.attempts import NOW, configure, request


def test_request_of_an_attempt() -> None:
    config = {"member": "torque", "seconds": 60}
    assert configure(KIND, config) == []
    assert request(KIND, config) == JobResults("torque", None, None, NOW - 60_000, NOW)


def test_action_and_process_select_results() -> None:
    config = {"member": "torque", "seconds": 60, "action": "tighten", "process": "JP-1"}
    assert configure(KIND, config) == []
    assert request(KIND, config) == JobResults("torque", "tighten", "JP-1", NOW - 60_000, NOW)


@pytest.mark.parametrize("config", [{"member": "torque"}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)
