"""Records refused messages, of which most are only counted in a flood, and refuses a message that comes too late."""

import asyncio
import time
from collections.abc import Callable
from typing import Final

from edge.foundation.errors import Refused
from edge.links.rate_limit import RateLimit
from edge.store.client import Store
from edge.store.refused import RefusedMessage, record_refusal

_MOST: Final = 200
_WITHIN_S: Final = 10.0
_MOST_WAYS: Final = 100


class RefusalRecorder:
    """Stores at most 200 refused messages of each way in 10 s, and counts all of them.

    A commit for each message of a flood would wear flash, and delay what waits behind it. The count of those that were
    not stored is written with the next one that is; what is counted only is lost when the process ends.
    """

    def __init__(self, store: Store, most: int = _MOST, clock: Callable[[], float] = time.monotonic) -> None:
        """Store `most` messages of a way in 10 s; `clock` returns monotonic seconds."""
        self._store = store
        self._most = most
        self._clock = clock
        self._limits: dict[str, RateLimit] = {}
        self._uncounted = 0

    async def record(self, message: RefusedMessage) -> None:
        """Store and count a refused message. Raises Unavailable when the store is unavailable."""
        if not self._limit_of(message.way).try_acquire():
            self._uncounted += 1
            # The messages of a flood must not hold the event loop, which no commit does here.
            await asyncio.sleep(0)
            return
        uncounted, self._uncounted = self._uncounted, 0
        try:
            await self._store.commit(record_refusal(self._store.keys, message, 1 + uncounted))
        except BaseException:  # a cancelled commit, too, has not counted them
            self._uncounted += uncounted
            raise

    def _limit_of(self, way: str) -> RateLimit:
        """Return the limit of a way; ways beyond the first hundred share one, as a sender may choose their names."""
        key = way if way in self._limits or len(self._limits) < _MOST_WAYS else ""
        return self._limits.setdefault(key, RateLimit(self._most, _WITHIN_S, self._clock))


UNKNOWN_AGE = -1
"""The expiry of a message that a broker had retained, and that does not state when it was sent."""


def refuse_expired(expires_at: int | None, now: int) -> None:
    """Raise Refused for a message whose expiry, in milliseconds since the epoch, has passed, or of UNKNOWN_AGE."""
    if expires_at == UNKNOWN_AGE:
        raise Refused("retained", "the message was retained and may be of any age", "Send it without RETAIN.")
    if expires_at is not None and now > expires_at:
        raise Refused("expired", f"the message expired {now - expires_at} ms ago", "If still wanted, send a new one.")
