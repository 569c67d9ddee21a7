"""Bounds the audit records that one user can cause without an effect."""

import time
from collections.abc import Callable

from edge.access.audit_trail import audit_logger


class CallerLimit:
    """Bounds the records that a user can cause without an effect on the station, by logins and by refused calls.

    Otherwise one client displaces the audit trail within minutes. The limit is per user, so that a flood hides no
    record of another user.
    """

    WITHIN_S = 60.0

    def __init__(self, most: int = 60, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._recorded: dict[str, tuple[float, int]] = {}

    def admits(self, user: str) -> bool:
        """Return whether a record is written; count it, and log the number of those that were dropped."""
        now = self._clock()
        since, count = self._recorded.get(user, (now, 0))
        if now - since > self.WITHIN_S:
            if count > self._most:
                dropped = count - self._most
                audit_logger.warning("audit records dropped", audit="audit.limit", user=user, dropped=dropped)
            since, count = now, 0
        self._recorded[user] = since, count + 1
        return count < self._most
