"""`job.store_and_start` asks for a job of a Work Master."""

import pytest

from edge.features.flows.nodes.job_store_and_start import KIND
from edge.features.flows.nodes.outside import StartJob
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"scope": "s", "work_master": "w"}
    assert configure(KIND, config) == []
    assert request(KIND, config, 5) == StartJob("s", "w", 5)


@pytest.mark.parametrize("config", [{"scope": "s"}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)


def test_kind_does_not_run_again_after_an_interruption() -> None:
    assert not KIND.repeatable
