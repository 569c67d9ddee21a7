"""`http.post` sends its input to a resource."""

import pytest

from edge.features.flows.nodes.http_post import KIND
from edge.features.flows.nodes.outside import PostResource
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"url": "http://line/report"}
    assert configure(KIND, config) == []
    assert request(KIND, config, 5) == PostResource("http://line/report", 5)


@pytest.mark.parametrize("config", [{"url": "line"}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)


def test_kind_does_not_run_again_after_an_interruption() -> None:
    assert not KIND.repeatable
