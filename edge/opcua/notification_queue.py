"""The queue of a monitored item, which reports what it lost, and messages within the limits of the client.

asyncua always discards the oldest notification, and its client does not learn of it.

The rest goes with the next message (OPC 10000-4, 5.14.5: MoreNotifications). A value that fits into no message is sent
with the status Bad_ResponseTooLarge instead of its content, so that its client can read it by IndexRange; a field of an
event holds that status in its place (OPC 10000-4, 7.22.3). asyncua sends messages of any size
(github.com/FreeOpcUa/opcua-asyncio/issues/1931), and the client closes the connection.
"""

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from asyncua import ua

from edge.foundation.text import Text
from edge.opcua.access import session_text
from edge.opcua.answer_encoding import (
    EncodedEvent,
    Part,
    encode_event,
    encode_notifications,
    monitored_value_parts,
    without_largest_fields,
)

_OVERFLOW = 0x480
"""The bits InfoType = DataValue and Overflow of a status code (OPC 10000-4, 7.39.1)."""
_SOURCE_NAME = "Internal/EventQueueOverflow"
_MESSAGE = Text.of("events were discarded: the queue is full")
_SEVERITY = 1


def add_value(queue: list[Any], new: ua.MonitoredItemNotification, size: int, *, discards_oldest: bool) -> bool:
    """Add a value; return whether a queue of more than one value has overflowed."""
    if len(queue) < size:
        queue.append(new)
        return False
    if size <= 1:
        queue[:] = [new]
        return False
    if discards_oldest:
        del queue[0]
        queue.append(new)
        queue[0] = _flagged(queue[0])
    else:
        queue[-1] = _flagged(new)
    return True


def add_event(
    queue: list[Any],
    new: EncodedEvent,
    size: int,
    overflow: EncodedEvent,
    *,
    discards_oldest: bool,
) -> bool:
    """Add an event; return whether the queue has overflowed.

    `overflow` is the event that reports it: at the beginning of the queue or at its end, once and not counted.
    """
    reported = any(encoded_event is overflow for encoded_event in queue)
    if len(queue) - reported < size:
        queue.append(new)
        return False
    if discards_oldest:
        del queue[int(reported)]
        if not reported:
            queue.insert(0, overflow)
        queue.append(new)
    elif not reported:
        queue.append(overflow)
    return True


def overflow_event(client_handle: int, asked: ua.EventFilter) -> EncodedEvent:
    """Return an event of the type EventQueueOverflowEventType with the fields that a filter selects."""
    now = datetime.now(UTC)
    known = {
        "EventId": ua.Variant(uuid.uuid4().bytes, ua.VariantType.ByteString),
        "EventType": ua.Variant(ua.NodeId(ua.ObjectIds.EventQueueOverflowEventType), ua.VariantType.NodeId),
        "SourceNode": ua.Variant(ua.NodeId(ua.ObjectIds.Server), ua.VariantType.NodeId),
        "SourceName": ua.Variant(_SOURCE_NAME, ua.VariantType.String),
        "Time": ua.Variant(now, ua.VariantType.DateTime),
        "ReceiveTime": ua.Variant(now, ua.VariantType.DateTime),
        "Message": ua.Variant(session_text(_MESSAGE), ua.VariantType.LocalizedText),
        "Severity": ua.Variant(_SEVERITY, ua.VariantType.UInt16),
    }
    names = [
        clause.BrowsePath[0].Name if len(clause.BrowsePath or ()) == 1 else "" for clause in asked.SelectClauses or ()
    ]
    return encode_event(client_handle, [known.get(name, ua.Variant()) for name in names])


def _flagged(sent: ua.MonitoredItemNotification) -> ua.MonitoredItemNotification:
    value = sent.Value
    status = ua.StatusCode(value.StatusCode.value | _OVERFLOW)
    return ua.MonitoredItemNotification(
        sent.ClientHandle, ua.DataValue(value.Value, status, value.SourceTimestamp, value.ServerTimestamp)
    )


_TOO_LARGE = ua.StatusCode(ua.StatusCodes.BadResponseTooLarge)
_AROUND = 64  # bytes of the two lists, in addition to their content

Notification: TypeAlias = ua.MonitoredItemNotification | EncodedEvent


class TakenNotifications:
    """The notifications of one message: `most` of them, encoded in `room` bytes; at least one."""

    def __init__(self, room: int, most: int) -> None:
        self._room = self._left = room - _AROUND
        self._most = most
        self.values: list[Sequence[Part]] = []
        self.events: list[EncodedEvent] = []

    def add(self, notification: Notification) -> bool:
        """Add a notification, reduced when it fits into no message; return False when this message is full."""
        count = len(self.values) + len(self.events)
        if count == self._most:
            return False
        parts = _parts(notification)
        if (size := sum(map(len, parts))) > self._room:
            notification = _reduced(notification, self._room)
            parts = _parts(notification)
            size = sum(map(len, parts))
        if count and size > self._left:
            return False
        self._left -= size
        if isinstance(notification, ua.MonitoredItemNotification):
            self.values.append(parts)
        else:
            self.events.append(notification)
        return True

    def encoded(self) -> Sequence[Part]:
        """Return the array of the notification data; empty without notifications."""
        return encode_notifications(self.values, self.events) if self.values or self.events else ()


def _parts(notification: Notification) -> Sequence[Part]:
    if isinstance(notification, ua.MonitoredItemNotification):
        return monitored_value_parts(notification)
    return (notification,)


def _reduced(sent: Notification, room: int) -> Notification:
    """Return the same notification without the value, or without the largest fields."""
    if isinstance(sent, ua.MonitoredItemNotification):
        times = {"SourceTimestamp": sent.Value.SourceTimestamp, "ServerTimestamp": sent.Value.ServerTimestamp}
        return ua.MonitoredItemNotification(sent.ClientHandle, ua.DataValue(StatusCode=_TOO_LARGE, **times))
    return without_largest_fields(sent, len(sent) - room, ua.Variant(_TOO_LARGE, ua.VariantType.StatusCode))
