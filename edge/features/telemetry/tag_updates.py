"""Keeps the definitions of tags of a gateway up to date: those of its settings, and those of the store over them."""

import structlog

from edge.ports.tag_definitions import TagDefinitions, decode_definitions
from edge.store.client import Store
from edge.store.setting_texts import TAGS

logger = structlog.get_logger(__name__)


class TagUpdates:
    """Loads the definitions of the store when they have changed."""

    def __init__(self, store: Store, definitions: TagDefinitions) -> None:
        self._store = store
        self._definitions = definitions
        self._revision = 0

    async def refresh(self, _scope: str = "") -> None:
        """Load the definitions if they have changed. Raises Unavailable."""
        if await TAGS.revision(self._store) == self._revision:
            return
        stored = await TAGS.load(self._store)
        if stored.revision == self._revision:  # another task has loaded them meanwhile
            return
        self._revision = stored.revision
        self._definitions.use_stored(decode_definitions(stored.texts.values()))
        logger.info("definitions of tags loaded", tags=len(stored.texts))
