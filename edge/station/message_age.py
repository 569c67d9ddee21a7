"""Refuses a message that comes too late, by the expiry that its sender set."""

from edge.foundation.errors import Refused

UNKNOWN_AGE = -1
"""The expiry of a message that a broker had retained, and that does not state when it was sent."""


def refuse_expired(expires_at: int | None, now: int) -> None:
    """Raise Refused for a message whose expiry, in milliseconds since the epoch, has passed, or of UNKNOWN_AGE."""
    if expires_at == UNKNOWN_AGE:
        raise Refused("retained", "the message was retained and may be of any age", "Send it without RETAIN.")
    if expires_at is not None and now > expires_at:
        raise Refused("expired", f"the message expired {now - expires_at} ms ago", "If still wanted, send a new one.")
