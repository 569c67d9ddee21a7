"""The revisions of Open Protocol messages that a controller accepts: fixed or learnt, beyond a connection."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from edge.features.openprotocol.protocol.mids import Decline, Mid

_NOTHING: Mapping[int, int] = MappingProxyType({})
_LOST_TIMES = 3
"""How often a connection ends on the same message until its revision counts as rejected."""
_ANOTHER_CLIENT = frozenset({Decline.BUSY, Decline.CONNECTED_ALREADY, Decline.OTHER_ACTOR})
_OF_REVISION = frozenset(
    {
        Decline.INVALID_DATA,
        Decline.MID_TO_SUBSCRIBE,
        Decline.REVISION_TO_SUBSCRIBE,
        Decline.REQUESTED_MID,
        Decline.REQUESTED_REVISION,
        Decline.REQUESTED_DATA,
        Decline.DATA_TO_SUBSCRIBE,
        Decline.COMMAND_FAILED,
        Decline.REVISION,
        Decline.UNKNOWN_MID,
    }
)
_ENTRY = re.compile(r"(\d{1,4}):(\d{1,3})", re.ASCII)
_SILENT_WHERE_UNKNOWN = frozenset({Mid.START, Mid.RESULT_SUBSCRIBE, Mid.SPINDLES_SUBSCRIBE})
"""Messages whose newer revisions some controllers do not answer at all."""


def rejects_revision(mid: int, error: int) -> bool:
    """Return whether a decline may be because of the revision of a message, so that an older one may be accepted.

    A declined start counts as one whatever the error is, unless another client is connected: makes use many errors.
    """
    return error not in _ANOTHER_CLIENT if mid == Mid.START else error in _OF_REVISION


def encode_revisions(revisions: Mapping[int, int]) -> str:
    """Return learnt revisions as a text: `1:3 60:2`."""
    return " ".join(f"{mid}:{revision}" for mid, revision in sorted(revisions.items()))


def decode_revisions(text: str) -> dict[int, int]:
    """Return the revisions of a text; what is not a revision is left out."""
    entries = filter(None, map(_ENTRY.fullmatch, text.split()))
    return {int(entry[1]): int(entry[2]) for entry in entries}


class Revisions:
    """The revision of each message: fixed, learnt from an earlier answer, or still to be tried.

    `learnt` outlives the connection. A rejected revision is not retried until every other one is rejected, too.
    """

    def __init__(self, fixed: Mapping[int, int] = _NOTHING, learnt: Mapping[int, int] = _NOTHING) -> None:
        self.learnt = dict(learnt)
        self._fixed = dict(fixed)
        self._rejected: set[tuple[int, int]] = set()
        self._closed: Counter[tuple[int, int]] = Counter()

    @property
    def rejections(self) -> int:
        """The number of revisions that are rejected at present."""
        return len(self._rejected)

    def candidates(self, mid: int, offered: Sequence[int]) -> tuple[int, ...]:
        """Return the revisions to try in their order: the learnt one, those after it in `offered`, then the others."""
        if mid in self._fixed:
            return (self._fixed[mid],)
        first = offered.index(self.learnt[mid]) if self.learnt.get(mid) in offered else 0
        ordered = (*offered[first:], *offered[:first])
        remaining = tuple(revision for revision in ordered if (mid, revision) not in self._rejected)
        if not remaining:
            self._rejected -= {(mid, revision) for revision in ordered}
        return remaining or ordered

    def accept(self, mid: int, revision: int) -> None:
        """Record the revision that a controller accepts."""
        if mid not in self._fixed:
            self.learnt[mid] = revision
            self._rejected = {rejected for rejected in self._rejected if rejected[0] != mid}

    def reject(self, mid: int, revision: int) -> None:
        """Record that a controller declines a revision."""
        self._rejected.add((mid, revision))

    def note_unanswered(self, mid: int, revision: int) -> None:
        """Record that a controller does not answer a revision: it does not have it, unless it accepted it before."""
        if mid in _SILENT_WHERE_UNKNOWN:
            (self.note_closed if self.learnt.get(mid) == revision else self.reject)(mid, revision)

    def note_closed(self, mid: int, revision: int) -> None:
        """Record that the connection ended without an answer: by chance, or because of the revision when it repeats."""
        self._closed[mid, revision] += 1
        if self._closed[mid, revision] >= _LOST_TIMES:
            del self._closed[mid, revision]
            self.reject(mid, revision)
