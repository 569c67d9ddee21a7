"""Reads many documents at a time; an unreadable one does not hide the others."""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import structlog

from edge.store.client import Store

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
