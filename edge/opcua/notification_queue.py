"""The queue of a monitored item, which reports what it lost, and messages within the limits of the client.

asyncua always discards the oldest notification, and its client does not learn of it.

The rest goes with the next message (OPC 10000-4, 5.14.5: MoreNotifications). A value that fits into no message is sent
with the status Bad_ResponseTooLarge instead of its content, so that its client can read it by IndexRange; a field of an
event holds that status in its place (OPC 10000-4, 7.22.3). asyncua sends messages of any size
(github.com/FreeOpcUa/opcua-asyncio/issues/1931), and the client closes the connection.
"""

import uuid
from collections import deque
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import TypeAlias

from asyncua import ua
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.ua.ua_binary import struct_to_binary

from edge.opcua.answer_encoding import (
    EncodedEvent,
    client_handle,
    encode_event,
    notification_size,
    without_largest_fields,
)

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
        "Message": ua.Variant(ua.LocalizedText(_MESSAGE, "en"), ua.VariantType.LocalizedText),
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
_AROUND = 256  # bytes of a response and of two lists, in addition to their content

Notification: TypeAlias = ua.MonitoredItemNotification | EncodedEvent


def limit_message(result: ua.PublishResult, subscription: InternalSubscription, largest: int) -> None:
    """Reduce a message to the client's maximum number of notifications and to so many bytes; at least one remains.

    The others go back to the queue.
    """
    max_notifications = subscription.monitored_item_srv.max_notifications
    message = result.NotificationMessage
    status = [value for value in message.NotificationData if isinstance(value, ua.StatusChangeNotification)]
    waiting = deque(_each(message.NotificationData))
    message.NotificationData = status
    room = left = largest - _AROUND - len(struct_to_binary(result))
    sent: list[Notification] = []
    while waiting:
        if (size := notification_size(waiting[0])) > room:
            waiting[0] = _reduced(waiting[0], room)
            size = notification_size(waiting[0])
        left -= size
        if sent and (left < 0 or len(sent) == max_notifications):
            break
        sent.append(waiting.popleft())
    message.NotificationData = [*_lists(sent), *status]
    result.MoreNotifications = bool(waiting)
    _requeue(subscription, waiting)


def is_within_count(result: ua.PublishResult, subscription: InternalSubscription) -> bool:
    """Return whether a message has at most the number of notifications that its client accepts."""
    most: int = subscription.monitored_item_srv.max_notifications
    return sum(1 for _ in _each(result.NotificationMessage.NotificationData)) <= most


def _each(data: Iterable[object]) -> Iterable[Notification]:
    for part in data:
        match part:
            case ua.DataChangeNotification():
                yield from part.MonitoredItems
            case ua.EventNotificationList():
                yield from part.Events
            case _:
                pass  # its status, which is not one of a queue


def _lists(sent: Iterable[Notification]) -> Iterable[object]:
    values = [value for value in sent if isinstance(value, ua.MonitoredItemNotification)]
    events = [value for value in sent if not isinstance(value, ua.MonitoredItemNotification)]
    if values:
        yield ua.DataChangeNotification(MonitoredItems=values)
    if events:
        yield ua.EventNotificationList(Events=events)


def _reduced(sent: Notification, room: int) -> Notification:
    """Return the same notification without the value, or without the largest fields."""
    if isinstance(sent, ua.MonitoredItemNotification):
        times = {"SourceTimestamp": sent.Value.SourceTimestamp, "ServerTimestamp": sent.Value.ServerTimestamp}
        return ua.MonitoredItemNotification(sent.ClientHandle, ua.DataValue(StatusCode=_TOO_LARGE, **times))
    return without_largest_fields(sent, len(sent) + _AROUND - room, ua.Variant(_TOO_LARGE, ua.VariantType.StatusCode))


def _requeue(subscription: InternalSubscription, waiting: Iterable[Notification]) -> None:
    # asyncua cannot take fewer notifications from its queues, and a message names items only by client handle.
    items = subscription.monitored_item_srv._monitored_items.items()  # noqa: SLF001
    item_of = {item.client_handle: item_id for item_id, item in items}
    for sent in waiting:
        if isinstance(sent, ua.MonitoredItemNotification):
            handle, queues = sent.ClientHandle, subscription._triggered_datachanges  # noqa: SLF001
        else:
            handle, queues = client_handle(sent), subscription._triggered_events  # noqa: SLF001
        if handle in item_of:  # else it was deleted meanwhile
            queues.setdefault(item_of[handle], []).append(sent)
