"""Where the definitions of tags of a gateway come from: the file of the site, and the store, which replaces them."""

from pathlib import Path

import structlog

from edge.foundation.errors import Refused, SettingsError
from edge.model.json_value import read_json_text
from edge.ports.tag import TagDefinitions, decode_definitions, parse_definitions
from edge.store.client import Store
from edge.store.resources import TAGS


def read_definitions(file: str) -> TagDefinitions:
    """Return the definitions of a file; an empty name means none. Raises SettingsError with all their faults."""
    if not file:
        return TagDefinitions()
    try:
        definitions, faults = parse_definitions(read_json_text(Path(file).read_bytes()))
    except OSError as error:
        definitions, faults = (), (f"cannot be read: {error.strerror}",)
    except Refused as refused:
        definitions, faults = (), (refused.message,)
    if faults:
        problems = [f"telemetry.tags: {file}: {fault}" for fault in faults]
        raise SettingsError(problems, "Correct them all; the JSON Schema is schemas/tags.schema.json.")
    return TagDefinitions(definitions)


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
