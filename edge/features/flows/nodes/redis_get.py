"""`redis.get`: the value of a key in a foreign Redis, read only."""

from collections.abc import Iterable

from edge.features.flows.nodes.http_get import url_faults
from edge.features.flows.nodes.kind import Attempt, Inputs, NodeConfig, NodeKind, Read
from edge.features.flows.nodes.outside import RedisValue
from edge.model.payload import Encoding


class RedisGetConfig(NodeConfig, frozen=True):
    """The server, the key and the encoding of its texts; `auto` is JSON, MessagePack or UTF-8.

    With `auto` one character alone is text or a digit: a MessagePack integer from 32 to 126 needs `msgpack`.
    """

    url: str
    key: str
    encoding: Encoding = "auto"


def _faults(config: RedisGetConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    return url_faults(config.url, ("redis", "rediss"))


def _query(config: RedisGetConfig, _attempt: Attempt) -> RedisValue:
    return RedisValue(config.url, config.key, config.encoding)


KIND = NodeKind(
    "redis.get", "The value of a key in a foreign Redis.", RedisGetConfig, Inputs.NONE, Read(_query), faults=_faults
)
