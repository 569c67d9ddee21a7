"""Remember events that no job took for an hour, so that a repetition passes no later part of a recipe.

A broker that is killed forgets the acknowledgements since it saved its database last, and delivers those messages
again. The events of equipment have one hash for each half hour: they need none of the marks that outlast a day.
"""

from typing import Final

from msgspec import Struct

from edge.store.commit import Commit, HashField
from edge.store.dedupe import digest
from edge.store.keys import Keys
from edge.store.query import StoreQuery, query

_PERIOD_MS: Final = 1_800_000
_MOST: Final = 10_000
"""The most events of a piece of equipment in half an hour that are remembered: of a flood the next event, too, would
pass a later part."""


class DiscardedEvent(Struct, frozen=True):
    """An event of a piece of equipment, `at` an instant in milliseconds since the epoch."""

    equipment: str
    source: str
    event_id: str
    at: int

    @property
    def _digest(self) -> str:
        return digest(self.source, self.event_id)

    def guards(self, keys: Keys) -> Commit:
        """Return the guards that the event was not discarded meanwhile."""
        return Commit(guards=tuple(HashField(key, self._digest, None) for key in self._keys(keys)))

    def remember(self, keys: Keys) -> Commit:
        """Remember the event; Stale when it was discarded already."""
        now, _ = self._keys(keys)
        operations = (("HSET", now, self._digest, ""), ("PEXPIRE", now, 2 * _PERIOD_MS))
        return Commit(self.guards(keys).guards, operations)

    def query_known(self, keys: Keys) -> StoreQuery[bool]:
        """Return the query whether the event was discarded in the last half hour."""
        return query(bool, "HEXISTS", self._keys(keys)[0], self._digest)

    def query_known_before(self, keys: Keys) -> StoreQuery[bool]:
        """Return the query whether the event was discarded in the half hour before."""
        return query(bool, "HEXISTS", self._keys(keys)[1], self._digest)

    def query_room(self, keys: Keys) -> StoreQuery[bool]:
        """Return the query whether one more event of this half hour may be remembered."""
        return query(lambda length: length < _MOST, "HLEN", self._keys(keys)[0])

    def _keys(self, keys: Keys) -> tuple[str, str]:
        period = self.at // _PERIOD_MS
        return keys.discarded(self.equipment, period), keys.discarded(self.equipment, period - 1)
