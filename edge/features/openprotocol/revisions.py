"""The learnt revisions of a controller in the memory of its equipment: they survive connection and restart."""

from edge.equipment.remembered_text import RememberedText
from edge.features.openprotocol.protocol.revisions import Revisions, decode_revisions, encode_revisions
from edge.features.openprotocol.settings import OpenProtocolSettings

LEARNT_REVISIONS = "revisions"
"""The name of the text with the learnt revisions."""


class LearntRevisions:
    """Reads the revisions of a controller once, and writes them when they have changed."""

    def __init__(self, settings: OpenProtocolSettings, memory: RememberedText) -> None:
        self._fixed = {int(mid): revision for mid, revision in settings.revisions.items()}
        self._memory = memory
        self._revisions: Revisions | None = None

    async def load(self) -> Revisions:
        """Return the revisions, the same for each connection; raises Unavailable without the store."""
        if self._revisions is None:
            self._revisions = Revisions(self._fixed, decode_revisions(await self._memory.recall()))
        return self._revisions

    async def save(self) -> None:
        """Write what was learnt since; without the store, on a later connection."""
        if self._revisions is not None:
            await self._memory.write(encode_revisions(self._revisions.learnt))
