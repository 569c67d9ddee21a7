"""The learnt revisions of a controller in the memory of its equipment: they survive connection and restart."""

from edge.links.openprotocol_revisions import Revisions, decode_revisions, encode_revisions
from edge.southbound.openprotocol_settings import OpenProtocolSettings
from edge.station.equipment import StationPort

_NAME = "revisions"


class LearntRevisions:
    """Reads the revisions of the equipment `name` once, and writes them when they have changed."""

    def __init__(self, name: str, settings: OpenProtocolSettings, station: StationPort) -> None:
        self._name = name
        self._fixed = {int(mid): revision for mid, revision in settings.revisions.items()}
        self._station = station
        self._revisions: Revisions | None = None
        self._stored = ""

    async def load(self) -> Revisions:
        """Return the revisions, the same for each connection; raises Unavailable without the store."""
        if self._revisions is None:
            self._stored = (await self._station.recall(self._name)).get(_NAME, "")
            self._revisions = Revisions(self._fixed, decode_revisions(self._stored))
        return self._revisions

    async def save(self) -> None:
        """Write what was learnt since; raises Unavailable without the store."""
        text = encode_revisions(self._revisions.learnt) if self._revisions else ""
        if text != self._stored:
            await self._station.remember(self._name, {_NAME: text})
            self._stored = text
