"""Scans keys by a pattern in batches, so that the server can serve other clients meanwhile."""

import re
from collections.abc import AsyncIterator

from edge.store.client import Store

_AT_A_TIME = 1000


async def scan_keys(store: Store, pattern: str) -> AsyncIterator[list[str]]:
    """Yield the keys that match a pattern of Redis, batch by batch.

    A key that exists throughout is among them and may come twice. Raises Unavailable when the store is unavailable.
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
