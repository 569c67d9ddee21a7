"""Adds notifications to the queue of a monitored item: a full queue reports what it lost (OPC 10000-4, 5.13.1.5).

asyncua always discards the oldest notification, and its client does not learn of it.
"""

import uuid
from datetime import UTC, datetime

from asyncua import ua

from edge.opcua.encoded_event import EncodedEvent, encode_event

_OVERFLOW = 0x480
"""The bits InfoType = DataValue and Overflow of a status code (OPC 10000-4, 7.39.1)."""
_SOURCE_NAME = "Internal/EventQueueOverflow"
_MESSAGE = "events were discarded: the queue is full"
_SEVERITY = 1


def add_value(
    queue: list[ua.MonitoredItemNotification], new: ua.MonitoredItemNotification, size: int, *, discards_oldest: bool
) -> bool:
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
    queue: list[EncodedEvent],
    new: EncodedEvent,
    size: int,
    overflow: EncodedEvent,
    *,
    discards_oldest: bool,
) -> bool:
    """Add an event; return whether the queue has overflowed.

    `overflow` is the event that reports it: at the beginning of the queue or at its end, once and not counted.
    """
    reported = any(each is overflow for each in queue)
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
        "Message": ua.Variant(ua.LocalizedText(_MESSAGE, "en"), ua.VariantType.LocalizedText),
        "Severity": ua.Variant(_SEVERITY, ua.VariantType.UInt16),
    }
    names = [each.BrowsePath[0].Name if len(each.BrowsePath or ()) == 1 else "" for each in asked.SelectClauses or ()]
    return encode_event(client_handle, [known.get(name, ua.Variant()) for name in names])


def _flagged(sent: ua.MonitoredItemNotification) -> ua.MonitoredItemNotification:
    value = sent.Value
    status = ua.StatusCode(value.StatusCode.value | _OVERFLOW)
    return ua.MonitoredItemNotification(
        sent.ClientHandle, ua.DataValue(value.Value, status, value.SourceTimestamp, value.ServerTimestamp)
    )
