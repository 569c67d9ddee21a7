"""`redis.get` reads a key of a foreign Redis."""

import pytest

from edge.features.flows.nodes.outside import RedisValue
from edge.features.flows.nodes.redis_get import KIND
from tests.features.flows.nodes.attempts import configure, request


def test_request_of_an_attempt() -> None:
    config = {"url": "redis://line", "key": "carriers"}
    assert configure(KIND, config) == []
    assert request(KIND, config) == RedisValue("redis://line", "carriers")
    assert request(KIND, config | {"encoding": "msgpack"}) == RedisValue("redis://line", "carriers", "msgpack")


@pytest.mark.parametrize(
    "config",
    [
        {"url": "http://line", "key": "k"},
        {"url": "redis://line"},
        {"url": "redis://line", "key": "k", "encoding": "xml"},
    ],
)
def test_invalid_configuration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)
