"""Notifications are split into messages within the limits of the client, and none is lost."""

from collections.abc import Iterable
from typing import Any

import pytest
from asyncua import ua
from asyncua.server.address_space import AddressSpace
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.server.monitored_item_service import MonitoredItemData
from hypothesis import given
from hypothesis import strategies as st

from edge.opcua.answer_encoding import EncodedEvent, client_handle, decode_event, encode_answer, encode_event
from edge.opcua.limits import DEFAULTS
from edge.opcua.monitored_items import MonitoredItems
from edge.opcua.notification_queue import is_within_count, limit_message

LARGEST = 8192
TOO_LARGE = ua.StatusCode(ua.StatusCodes.BadResponseTooLarge)
VALUES, EVENTS = range(3), range(3, 5)  # the client handles of the items


def change(handle: int, size: int) -> ua.MonitoredItemNotification:
    content = ua.Variant(bytes(size), ua.VariantType.ByteString)
    return ua.MonitoredItemNotification(handle, ua.DataValue(content))


def event(handle: int, *sizes: int) -> EncodedEvent:
    return encode_event(handle, [ua.Variant(bytes(size), ua.VariantType.ByteString) for size in sizes])


def subscription(max_notifications: int = 0) -> InternalSubscription:
    granted = ua.CreateSubscriptionResult(SubscriptionId=1, RevisedPublishingInterval=100)
    made = InternalSubscription(granted, AddressSpace(), lambda _: None, ua.NodeId(), request_callback=lambda _: None)
    made.monitored_item_srv = MonitoredItems(made, made.monitored_item_srv.aspace, max_notifications, DEFAULTS)
    for handle in (*VALUES, *EVENTS):
        item = MonitoredItemData()
        item.client_handle = handle
        made.monitored_item_srv._monitored_items[100 + handle] = item  # noqa: SLF001 - as asyncua does
    return made


async def published(made: InternalSubscription, notifications: Iterable[object]) -> list[ua.PublishResult]:
    """Return the messages that publish all these notifications."""
    for notification in notifications:
        if isinstance(notification, ua.MonitoredItemNotification):
            await made.enqueue_datachange_event(100 + notification.ClientHandle, notification, 0)
        else:
            await made.enqueue_event(100 + client_handle(notification), notification, 0)  # type: ignore[arg-type]
    results: list[ua.PublishResult] = []
    while not results or results[-1].MoreNotifications:
        results.append(made._pop_publish_result())  # noqa: SLF001 - as asyncua does
        limit_message(results[-1], made, LARGEST)
    return results


def each_of(result: ua.PublishResult) -> list[object]:
    """Return the notifications of a message; events decoded."""
    return [
        decode_event(value) if isinstance(value, bytes) else value  # type: ignore[arg-type]
        for data in result.NotificationMessage.NotificationData
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
    results = await published(subscription(), notifications)
    assert all(encode_answer(ua.PublishResponse(Parameters=result), LARGEST).size <= LARGEST for result in results)
    assert all(each_of(result) for result in results[1:])
    heard = [value for result in results for value in each_of(result)]
    for handle in (*VALUES, *EVENTS):
        assert of_item(heard, handle) == of_item(notifications, handle)


@pytest.mark.parametrize(
    ("max_notifications", "messages"), [(0, [7]), (1, [1] * 7), (3, [3, 3, 1]), (7, [7]), (100, [7])]
)
async def test_message_has_at_most_the_requested_notifications(max_notifications: int, messages: list[int]) -> None:
    made = subscription(max_notifications)
    notifications = [change(number % 3, 1) for number in range(4)] + [event(3, number) for number in range(3)]
    results = await published(made, notifications)
    assert [len(each_of(result)) for result in results] == messages
    assert all(is_within_count(result, made) for result in results)


async def test_a_value_too_large_for_any_message_is_reported_by_its_status() -> None:
    (result,) = await published(subscription(), [change(0, LARGEST), change(1, 1)])
    large, small = each_of(result)
    assert (large.Value.StatusCode, small.Value.StatusCode) == (TOO_LARGE, ua.StatusCode())  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sizes", "left_out"),
    [((10, 9000, 5), [1]), ((4000, 5000, 6000), [2, 1]), ((1800, 1800, 1800, 1800, 1800), [0])],
)
async def test_largest_fields_of_a_too_large_event_are_replaced(sizes: tuple[int, ...], left_out: list[int]) -> None:
    (result,) = await published(subscription(), [event(3, *sizes)])
    (published_event,) = each_of(result)
    fields = published_event.EventFields  # type: ignore[attr-defined]
    assert {at for at, field in enumerate(fields) if field.Value == TOO_LARGE} == set(left_out)


async def test_notifications_of_a_deleted_item_are_dropped() -> None:
    made = subscription()
    for handle in VALUES:
        await made.enqueue_datachange_event(100 + handle, change(handle, 5000), 0)
    del made.monitored_item_srv._monitored_items[101]  # noqa: SLF001 - as asyncua does
    first, second = await published(made, [])
    assert [value.ClientHandle for result in (first, second) for value in each_of(result)] == [0, 2]  # type: ignore[attr-defined]


async def test_status_change_is_reported_with_a_full_message() -> None:
    made = subscription()
    await made.enqueue_statuschange(ua.StatusCode(ua.StatusCodes.BadTimeout))
    (result,) = await published(made, [change(0, LARGEST)])
    *_, status = result.NotificationMessage.NotificationData
    assert status.Status.value == ua.StatusCodes.BadTimeout
