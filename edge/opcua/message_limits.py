"""Limits the messages of a subscription to the number and size that the client accepts.

The rest goes with the next message (OPC 10000-4, 5.14.5: MoreNotifications). A value that fits into no message is sent
with the status Bad_ResponseTooLarge instead of its content, so that its client can read it by IndexRange; a field of an
event holds that status in its place (OPC 10000-4, 7.22.3). asyncua sends messages of any size
(github.com/FreeOpcUa/opcua-asyncio/issues/1931), and the client closes the connection.
"""

from collections import deque
from collections.abc import Iterable
from typing import TypeAlias

from asyncua import ua
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.ua.ua_binary import struct_to_binary

from edge.opcua.answer_encoding import notification_size
from edge.opcua.encoded_event import EncodedEvent, client_handle, without_largest_fields

_TOO_LARGE = ua.StatusCode(ua.StatusCodes.BadResponseTooLarge)
_AROUND = 256  # bytes of a response and of two lists, in addition to their content

Notification: TypeAlias = ua.MonitoredItemNotification | EncodedEvent


def limit_message(result: ua.PublishResult, subscription: InternalSubscription, largest: int) -> None:
    """Reduce a message to the client's maximum number of notifications and to so many bytes; at least one remains.

    The others go back to the queue.
    """
    max_notifications = subscription.monitored_item_srv.max_notifications
    message = result.NotificationMessage
    status = [each for each in message.NotificationData if isinstance(each, ua.StatusChangeNotification)]
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
    values = [each for each in sent if isinstance(each, ua.MonitoredItemNotification)]
    events = [each for each in sent if not isinstance(each, ua.MonitoredItemNotification)]
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
