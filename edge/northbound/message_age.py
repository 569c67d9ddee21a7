"""Compute when a message was sent and when it expires, from its own attributes."""

from edge.model.cloudevent import CloudEvent
from edge.model.instant import milliseconds, parse_instant


def sent_at_of(event: CloudEvent) -> int | None:
    """Return the `time` of an event in milliseconds since the epoch; None without one that can be read."""
    return _milliseconds(event.time)


def expiry_of(event: CloudEvent) -> int | None:
    """Return the earlier of `expirytime` and `time` plus `expiryinterval`; None when the event has neither."""
    instants = [_milliseconds(event.extensions.get("expirytime"))]
    sent_at = sent_at_of(event)
    if sent_at is not None and event.expiryinterval is not None:
        instants.append(sent_at + event.expiryinterval * 1000)
    return min((instant for instant in instants if instant is not None), default=None)


def sent_at_by_broker(received_at: int | None, remaining_s: int | None, interval: str) -> int | None:
    """Return when a message was sent by the clock of the broker, which counts its expiry down while it waits.

    `interval` is the attribute `expiryinterval`: the expiry that the sender set. None when one of the three is unknown.
    """
    if received_at is None or remaining_s is None or not (interval.isascii() and interval.isdecimal()):
        return None
    return received_at - max(0, int(interval) - remaining_s) * 1000


def _milliseconds(text: str | None) -> int | None:
    if text is None:
        return None
    try:
        return milliseconds(parse_instant(text))
    except ValueError:
        return None
