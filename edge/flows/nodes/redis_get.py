"""`redis.get`: the value of a key in a foreign Redis, read only."""

from collections.abc import Iterable

from edge.flows.nodes.http_get import url_faults
from edge.flows.nodes.kind import Attempt, Inputs, NodeConfig, NodeKind, Read
from edge.flows.nodes.read import RedisValue


class RedisGetConfig(NodeConfig, frozen=True):
    """The server and the key; a text is JSON, MessagePack or UTF-8."""

    url: str
    key: str


def _faults(config: RedisGetConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    return url_faults(config.url, ("redis", "rediss"))


def _query(config: RedisGetConfig, _attempt: Attempt) -> RedisValue:
    return RedisValue(config.url, config.key)


KIND = NodeKind(
    "redis.get", "The value of a key in a foreign Redis.", RedisGetConfig, Inputs.NONE, Read(_query), faults=_faults
)
