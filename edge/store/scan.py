"""Walks over keys by a pattern, however many there are, without keeping the server from its work."""

import re
from collections.abc import AsyncIterator

from edge.store.client import Store

_AT_A_TIME = 1000


async def scan_keys(store: Store, pattern: str) -> AsyncIterator[list[str]]:
    """Yield the keys that fit a pattern of Redis, batch by batch; one that is there all the while is surely among them.

    A key may come twice. Raises Unavailable when the store is gone.
    """
    cursor = "0"
    while True:
        cursor, found = await store.execute("SCAN", cursor, "MATCH", pattern, "COUNT", _AT_A_TIME)
        if found:
            yield found
        if str(cursor) == "0":
            return


def escape_pattern(text: str) -> str:
    """Escape the special characters of a pattern of Redis, so that it matches just this text."""
    return re.sub(r"([*?\[\]\\^-])", r"\\\1", text)
