"""Reads many keys: by a pattern in batches, or documents, of which some may be unreadable."""

import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import TypeVar

import structlog

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


logger = structlog.get_logger(__name__)

_Read = TypeVar("_Read")


async def load_readable(store: Store, keys: Sequence[str], read: Callable[[Mapping[str, str]], _Read]) -> list[_Read]:
    """Read the documents at some keys; a missing one is left out, an unreadable one is logged and left out."""
    found = await store.read([("HGETALL", key) for key in keys])
    documents = []
    for key, stored in zip(keys, found, strict=True):
        try:
            # A document that was removed in between is left out.
            documents += [read(stored)] if stored else []
        except Exception:
            # One unreadable document must not hide the others.
            logger.exception("document cannot be read", key=key)
    return documents


async def load_scopes(store: Store) -> set[str]:
    """Return the scopes that ever held a job, or that a gateway ever worked on."""
    work = store.keys.sfc_work("")
    worked_on = {key.removeprefix(work) async for batch in scan_keys(store, f"{work}*") for key in batch}
    held: set[str] = await store.execute("SMEMBERS", store.keys.active_scopes())
    return worked_on | held
