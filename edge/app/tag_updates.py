"""Keeps the definitions of tags of a gateway up to date: those of its settings, and those of the store over them."""

import asyncio
from typing import Final

import structlog

from edge.errors import Unavailable
from edge.rules.tag_definitions import TagDefinitions, decode_definitions
from edge.store import tag_definitions
from edge.store.client import Store

logger = structlog.get_logger(__name__)

_POLL_S: Final = 5.0
"""Another process on the same store may have changed them."""


class TagUpdates:
    """Loads the definitions of the store when they have changed."""

    def __init__(self, store: Store, definitions: TagDefinitions) -> None:
        self._store = store
        self._definitions = definitions
        self._revision = 0

    async def run(self, poll_s: float = _POLL_S) -> None:
        """Follow the definitions until cancelled; an unavailable store is waited for."""
        while True:
            try:
                await self.refresh()
            except Unavailable as error:
                logger.debug("definitions of tags not read", reason=error.message)
            await asyncio.sleep(poll_s)

    async def refresh(self) -> None:
        """Load the definitions if they have changed. Raises Unavailable."""
        if await tag_definitions.revision(self._store) == self._revision:
            return
        stored = await tag_definitions.load(self._store)
        self._revision = stored.revision
        self._definitions.use_stored(decode_definitions(stored.texts.values()))
        logger.info("definitions of tags loaded", tags=len(stored.texts))
