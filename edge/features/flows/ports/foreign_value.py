"""Reads a key of a Redis that belongs to another system."""

from typing import Any

import msgspec

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import RedisValue
from edge.foundation.text import Text
from edge.store.other_redis import open_foreign


async def read_key(query: RedisValue, _action_id: str) -> Any:
    """Return the value of a key, None for an absent one.

    Raises NodeError for a value that cannot be used, Unavailable when the server is gone.
    """
    try:
        async with open_foreign(query.url) as foreign:
            return msgspec.to_builtins(await foreign.read_value(query.key, query.encoding), str_keys=True)
    except (ValueError, TypeError) as error:
        raise NodeError(Text.of("key {key!r}: {reason}", key=query.key[:200], reason=error)) from None
