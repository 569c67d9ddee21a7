"""`http.get` reads a resource; only URLs of http and https are allowed."""

import pytest

from edge.features.flows.nodes.http_get import KIND
from edge.features.flows.nodes.outside import HttpResource
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"url": "https://line/report"}
    assert configure(KIND, config) == []
    assert request(KIND, config) == HttpResource("https://line/report")


@pytest.mark.parametrize("config", [{}, {"url": "ftp://line/"}, {"url": "https://"}, {"url": "http://[::1"}])
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)
