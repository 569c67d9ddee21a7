"""Notifications are split into messages within the limits of the client, and none is lost."""

from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pytest
from asyncua import ua
from asyncua.common.utils import Buffer
from asyncua.server.address_space import AddressSpace
from asyncua.ua.ua_binary import struct_from_binary
from hypothesis import given
from hypothesis import strategies as st

from edge.opcua.answer_encoding import EncodedEvent, EncodedMessage, decode_event, encode_event
from edge.opcua.limits import DEFAULTS
from edge.opcua.monitored_items import MonitoredItem, MonitoredItems
from edge.opcua.request_counts import SubscriptionCounts

LARGEST = 8192
NOW = datetime(2026, 1, 2, tzinfo=UTC)
TOO_LARGE = ua.StatusCode(ua.StatusCodes.BadResponseTooLarge)
VALUES, EVENTS = range(3), range(3, 5)  # the client handles of the items


def change(handle: int, size: int) -> ua.MonitoredItemNotification:
    content = ua.Variant(bytes(size), ua.VariantType.ByteString)
    return ua.MonitoredItemNotification(handle, ua.DataValue(content))


def event(handle: int, *sizes: int) -> EncodedEvent:
    return encode_event(handle, [ua.Variant(bytes(size), ua.VariantType.ByteString) for size in sizes])


def item(handle: int) -> MonitoredItem:
    attribute = ua.AttributeIds.Value if handle in VALUES else ua.AttributeIds.EventNotifier
    return MonitoredItem(
        monitored_item_id=100 + handle,
        client_handle=handle,
        read_value_id=ua.ReadValueId(AttributeId=attribute),
        mode=ua.MonitoringMode.Reporting,
        filter=ua.EventFilter(),
        queue_size=100,
        timestamps=ua.TimestampsToReturn.Both,
        discards_oldest=True,
    )


async def published(notifications: Iterable[Any], max_notifications: int = 0) -> list[EncodedMessage]:
    """Return the messages that publish all these notifications."""
    made = MonitoredItems(AddressSpace(), max_notifications, DEFAULTS, SubscriptionCounts())
    monitored = {handle: item(handle) for handle in (*VALUES, *EVENTS)}
    for notification in notifications:
        decoded = decode_event(EncodedEvent(notification)) if isinstance(notification, bytes) else notification
        await made.notify(monitored[decoded.ClientHandle], notification)
    messages = [EncodedMessage(1, NOW, made.take(LARGEST))]
    while made.has_notifications:
        messages.append(EncodedMessage(1, NOW, made.take(LARGEST)))
    return messages


def each_of(message: EncodedMessage) -> list[Any]:
    """Return the notifications of a message, decoded."""
    decoded = struct_from_binary(ua.NotificationMessage, Buffer(b"".join(message.parts())))
    return [
        value
        for data in decoded.NotificationData
        for value in (data.Events if isinstance(data, ua.EventNotificationList) else data.MonitoredItems)
    ]


def of_item(notifications: Iterable[object], handle: int) -> list[object]:
    decoded: list[Any] = [
        decode_event(EncodedEvent(value)) if isinstance(value, bytes) else value for value in notifications
    ]
    return [value for value in decoded if value.ClientHandle == handle]


@given(
    st.lists(
        st.builds(change, st.sampled_from(VALUES), st.integers(0, 7000))
        | st.builds(event, st.sampled_from(EVENTS), st.integers(0, 4000), st.integers(0, 3000)),
        max_size=12,
    )
)
async def test_notifications_are_sent_in_order_in_messages_within_the_limit(notifications: list[object]) -> None:
    results = await published(notifications)
    assert all(sum(map(len, message.parts())) <= LARGEST for message in results)
    assert all(each_of(result) for result in results[1:])
    heard = [value for result in results for value in each_of(result)]
    for handle in (*VALUES, *EVENTS):
        assert of_item(heard, handle) == of_item(notifications, handle)


@pytest.mark.parametrize(
    ("max_notifications", "messages"), [(0, [7]), (1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (100, [7])]
)
async def test_message_has_at_most_the_requested_notifications(max_notifications: int, messages: list[int]) -> None:
    notifications = [change(number % 3, 1) for number in range(4)] + [event(3, number) for number in range(3)]
    results = await published(notifications, max_notifications)
    assert [len(each_of(result)) for result in results] == messages


async def test_a_value_too_large_for_any_message_is_reported_by_its_status() -> None:
    (result,) = await published([change(0, LARGEST), change(1, 1)])
    large, small = each_of(result)
    assert (large.Value.StatusCode, small.Value.StatusCode) == (TOO_LARGE, ua.StatusCode())


@pytest.mark.parametrize(
    ("sizes", "left_out"),
    [((10, 9000, 5), [1]), ((4000, 5000, 6000), [2, 1]), ((1800, 1800, 1800, 1800, 1800), [0])],
)
async def test_largest_fields_of_a_too_large_event_are_replaced(sizes: tuple[int, ...], left_out: list[int]) -> None:
    (result,) = await published([event(3, *sizes)])
    (published_event,) = each_of(result)
    fields = published_event.EventFields
    assert {at for at, field in enumerate(fields) if field.Value == TOO_LARGE} == set(left_out)
