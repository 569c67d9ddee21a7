"""Monitored items of values and events; items that could never report are refused (OPC 10000-4, 5.13.2).

asyncua accepts any filter: it fails at the first notification, or answers a whole request with a fault when one item is
invalid.
"""

import asyncio
import contextlib
from collections import deque
from collections.abc import Iterable, Sequence
from typing import Any

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.server.address_space import AddressSpace
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.server.monitored_item_service import MonitoredItemData, MonitoredItemService
from asyncua.ua.uaprotocol_auto import DataChangeFilter  # as it is read; `ua` has another by this name

from edge.opcua.answer_encoding import EncodedEvent
from edge.opcua.event_filter import event_filter_result, event_filter_status, has_unknown_fields
from edge.opcua.limits import MAX_PUBLISHING_INTERVAL_MS, NOTIFICATIONS_PER_MESSAGE, ServerLimits, clamp
from edge.opcua.notification_queue import Notification, add_event, add_value, overflow_event
from edge.opcua.request_counts import SubscriptionCounts
from edge.opcua.time_slices import Turn
from edge.opcua.value_reads import check_encoding, is_valid_range, part_of, stamp_change


class TriggerLinks:
    """The links of one subscription, and the notifications of items in the mode Sampling."""

    def __init__(self, max_links: int) -> None:
        self._max_links = max_links
        self._links: dict[int, dict[int, None]] = {}
        self._count = 0
        self.sampled: dict[int, deque[Notification]] = {}

    def add(self, trigger: int, linked: int) -> bool:
        """Add a link; return False when there are too many."""
        there = self._links.setdefault(trigger, {})
        if linked not in there:
            if self._count >= self._max_links:
                return False
            there[linked] = None
            self._count += 1
        return True

    def remove(self, trigger: int, linked: int) -> bool:
        """Remove a link; return whether it was there."""
        there = self._links.get(trigger, {})
        if linked not in there:
            return False
        del there[linked]
        self._count -= 1
        return True

    def forget(self, item: int) -> None:
        """Remove an item that was deleted: its samples, the links from it and to it."""
        self._count -= len(self._links.pop(item, {}))
        for trigger in self._links:
            self.remove(trigger, item)
        self.sampled.pop(item, None)

    def linked(self, trigger: int) -> Iterable[int]:
        """Return the items that an item triggers."""
        return tuple(self._links.get(trigger, ()))

    def sample(self, item: int, notification: Notification, size: int) -> None:
        """Queue a notification of an item until it is triggered; the oldest leaves a full queue."""
        self.sampled.setdefault(item, deque(maxlen=max(size, 1))).append(notification)


_NUMBERS = frozenset(
    ua.VariantType(number) for number in range(ua.VariantType.SByte.value, ua.VariantType.String.value)
)

_KEEPS_UP = 3
"""A client that has not acknowledged so many messages does not keep up: they are kept until it does."""

_GOOD = ua.StatusCode()


def _bad_item(is_unknown: bool) -> ua.StatusCode:  # noqa: FBT001 - the condition itself
    return ua.StatusCode(ua.StatusCodes.BadMonitoredItemIdInvalid if is_unknown else ua.StatusCodes.Good)


def _bad(code: int) -> ua.StatusCode:
    return ua.StatusCode(code)


class MonitoredItems(MonitoredItemService):
    """The monitored items of one subscription, and the maximum of notifications per message (0: all)."""

    def __init__(
        self, subscription: InternalSubscription, aspace: AddressSpace, max_notifications: int, limits: ServerLimits
    ) -> None:
        super().__init__(subscription, aspace)
        self.limit_notifications(max_notifications)
        self.modified = asyncio.Event()
        """Set when the publishing interval has changed."""
        self.has_more = False
        """Whether the last message left notifications for the next."""
        self._last: dict[int, ua.DataValue] = {}
        self._timestamps: dict[int, ua.TimestampsToReturn] = {}
        self._timestamps_asked = ua.TimestampsToReturn.Both
        self.counts = SubscriptionCounts()
        self._keeps_oldest: set[int] = set()
        """Items that discard the newest notification when their queue is full."""
        self._overflow_events: dict[int, EncodedEvent] = {}
        self._triggers = TriggerLinks(limits.monitored_items_of_session)

    def limit_notifications(self, asked: int) -> None:
        """Set the maximum of notifications per message (0: all)."""
        self.max_notifications = min(asked or NOTIFICATIONS_PER_MESSAGE, NOTIFICATIONS_PER_MESSAGE)

    def handles(self) -> tuple[list[int], list[int]]:
        """Return the ids and the client handles of all items."""
        return list(self._monitored_items), [item.client_handle for item in self._monitored_items.values()]

    @property
    def disabled(self) -> int:
        """The number of disabled items."""
        return sum(item.mode is ua.MonitoringMode.Disabled for item in self._monitored_items.values())

    async def create_monitored_items(
        self, params: ua.CreateMonitoredItemsParameters
    ) -> list[ua.MonitoredItemCreateResult]:
        """Create items; their first values are reported before this returns."""
        self._timestamps_asked = params.TimestampsToReturn
        results: list[ua.MonitoredItemCreateResult] = await super().create_monitored_items(params)
        for request, result in zip(params.ItemsToCreate, results, strict=True):
            self._remember(result.MonitoredItemId, params.TimestampsToReturn, request.RequestedParameters)
            result.RevisedSamplingInterval = self._sampling_interval(request.RequestedParameters)
        return results

    def _sampling_interval(self, asked: ua.MonitoringParameters) -> float:
        """Return the interval that the client asks for, the publishing interval at the least."""
        shortest = self.isub.data.RevisedPublishingInterval
        return clamp(asked.SamplingInterval, shortest, max(shortest, MAX_PUBLISHING_INTERVAL_MS))

    def modify_monitored_items(self, params: ua.ModifyMonitoredItemsParameters) -> list[ua.MonitoredItemModifyResult]:
        """Change items."""
        results: list[ua.MonitoredItemModifyResult] = super().modify_monitored_items(params)
        for request, result in zip(params.ItemsToModify, results, strict=True):
            if result.StatusCode.is_good():
                self._remember(request.MonitoredItemId, params.TimestampsToReturn, request.RequestedParameters)
                result.RevisedSamplingInterval = self._sampling_interval(request.RequestedParameters)
        return results

    def _remember(self, item: int, timestamps: ua.TimestampsToReturn, asked: ua.MonitoringParameters) -> None:
        self._timestamps[item] = timestamps
        self._overflow_events.pop(item, None)
        (self._keeps_oldest.discard if asked.DiscardOldest else self._keeps_oldest.add)(item)

    async def set_monitoring_mode(self, mode: ua.MonitoringMode, ids: list[int]) -> list[ua.StatusCode]:
        """Set the mode of items: a disabled item drops its value, a reporting one sends its sample."""
        for item_id in ids:
            if mode is ua.MonitoringMode.Disabled:
                self._last.pop(item_id, None)
                self._triggers.sampled.pop(item_id, None)
        results: list[ua.StatusCode] = await super().set_monitoring_mode(mode, ids)
        for item_id in ids:
            if mode is ua.MonitoringMode.Reporting:
                self._report_sampled(item_id)
        return results

    def set_triggering(self, trigger: int, to_add: Sequence[int], to_remove: Sequence[int]) -> ua.SetTriggeringResult:
        """Link items to the item that triggers them. Raises ServiceError for an unknown one."""
        if trigger not in self._monitored_items:
            raise ServiceError(ua.StatusCodes.BadMonitoredItemIdInvalid)
        removed = [_bad_item(not self._triggers.remove(trigger, index)) for index in to_remove]
        added = [
            _bad_item(index not in self._monitored_items or not self._triggers.add(trigger, index)) for index in to_add
        ]
        return ua.SetTriggeringResult(AddResults=added, RemoveResults=removed)

    async def resend(self, turn: Turn) -> None:
        """Report the value of every reporting item again (OPC 10000-5, 9.2)."""
        for item_id, item in tuple(self._monitored_items.items()):
            if item.callback_handle is not None and item.mode is ua.MonitoringMode.Reporting:
                self._last.pop(item_id, None)
                await self.trigger_datachange(
                    item.callback_handle, item.read_value_id.NodeId, item.read_value_id.AttributeId
                )
            await turn.step()

    def has_room(self, item: MonitoredItemData, most: int) -> bool:
        """Return whether an item takes another event without loss, and its client keeps up with what was sent.

        Less than `most` events are queued then.
        """
        queued = len(self.isub._triggered_events.get(item.monitored_item_id, ()))  # noqa: SLF001
        unacknowledged = len(self.isub._not_acknowledged_results)  # noqa: SLF001
        return queued < min(item.queue_size, most) and unacknowledged < _KEEPS_UP

    async def notify(self, item: MonitoredItemData, notification: Notification) -> None:
        """Queue a notification: to be published, or until another item triggers it."""
        if item.mode is ua.MonitoringMode.Sampling:
            self._triggers.sample(item.monitored_item_id, notification, item.queue_size)
        else:
            self._enqueue(item, notification)
        for linked in self._triggers.linked(item.monitored_item_id):
            self._report_sampled(linked)

    def _report_sampled(self, item_id: int) -> None:
        item = self._monitored_items.get(item_id)
        if item is not None:
            for notification in self._triggers.sampled.pop(item_id, ()):
                self._enqueue(item, notification)

    def _enqueue(self, item: MonitoredItemData, notification: Notification) -> None:
        item_id = item.monitored_item_id
        discards_oldest = item_id not in self._keeps_oldest
        if not isinstance(notification, ua.MonitoredItemNotification):
            events = self.isub._triggered_events.setdefault(item_id, [])  # noqa: SLF001
            overflow = self._overflow_events.get(item_id)
            if overflow is None:
                overflow = self._overflow_events[item_id] = overflow_event(item.client_handle, item.filter)
            full = add_event(events, notification, item.queue_size, overflow, discards_oldest=discards_oldest)
            self.counts.event_overflows += full
        else:
            values = self.isub._triggered_datachanges.setdefault(item_id, [])  # noqa: SLF001
            full = add_value(values, notification, item.queue_size, discards_oldest=discards_oldest)
            self.counts.value_overflows += full

    def _create_events_monitored_item(self, params: ua.MonitoredItemCreateRequest) -> ua.MonitoredItemCreateResult:
        asked = params.RequestedParameters.Filter
        notifier = self.aspace.read_attribute_value(params.ItemToMonitor.NodeId, ua.AttributeIds.EventNotifier)
        status = notifier.StatusCode
        if status.is_good() and not notifier.Value.Value & 1 << ua.EventNotifier.SubscribeToEvents:
            status = _bad(ua.StatusCodes.BadNotSupported)
        status = status if status.is_bad() else event_filter_status(asked, self.aspace)
        result = ua.MonitoredItemCreateResult(StatusCode=status)
        if status.is_good():
            result = super()._create_events_monitored_item(params)
        if status.is_bad() or has_unknown_fields(asked, self.aspace):
            result.FilterResult = event_filter_result(asked, self.aspace)
        return result

    async def _create_data_change_monitored_item(
        self, params: ua.MonitoredItemCreateRequest
    ) -> ua.MonitoredItemCreateResult:
        status = self._check_value_filter(params.ItemToMonitor, params.RequestedParameters.Filter)
        if status.is_bad():
            return ua.MonitoredItemCreateResult(StatusCode=status)
        return await super()._create_data_change_monitored_item(params)

    def _modify_monitored_item(self, params: ua.MonitoredItemModifyRequest) -> ua.MonitoredItemModifyResult:
        item = self._monitored_items.get(params.MonitoredItemId)
        if item is None or item.read_value_id is None:
            return ua.MonitoredItemModifyResult(StatusCode=_bad(ua.StatusCodes.BadMonitoredItemIdInvalid))
        asked = params.RequestedParameters.Filter
        is_of_events = item.read_value_id.AttributeId == ua.AttributeIds.EventNotifier
        status = (
            event_filter_status(asked, self.aspace)
            if is_of_events
            else self._check_value_filter(item.read_value_id, asked)
        )
        if status.is_bad():
            return ua.MonitoredItemModifyResult(StatusCode=status, FilterResult=event_filter_result(asked, self.aspace))
        return super()._modify_monitored_item(params)

    async def datachange_callback(self, handle: int, value: ua.DataValue, error: ua.StatusCode | None = None) -> None:
        """Queue a value, unless the monitored part of it is unchanged."""
        item_id = self._monitored_datachange.get(handle)
        item = self._monitored_items.get(item_id)
        if item is None or item.mode is ua.MonitoringMode.Disabled:
            return
        text = item.read_value_id and item.read_value_id.IndexRange
        current = part_of(value, text) if text else value
        last = self._last.get(item_id)
        # Values are never changed in place: asyncua would copy each value to compare it with the next.
        if last is None or _is_reported(last, current, item.filter):
            self._last[item_id] = current
            stamped = stamp_change(current, self._timestamps.get(item_id, self._timestamps_asked))
            await self.notify(item, ua.MonitoredItemNotification(item.client_handle, stamped))

    def _delete_monitored_items(self, mid: int) -> ua.StatusCode:
        # By the handles of the item: asyncua searches all items for each one that it deletes.
        item = self._monitored_items.pop(mid, None)
        if item is None:
            return _bad(ua.StatusCodes.BadMonitoredItemIdInvalid)
        self._last.pop(mid, None)
        self._timestamps.pop(mid, None)
        self._overflow_events.pop(mid, None)
        self._keeps_oldest.discard(mid)
        self._triggers.forget(mid)
        if item.callback_handle in self._monitored_datachange:
            # The node may be gone meanwhile.
            with contextlib.suppress(KeyError):
                self.aspace.delete_datachange_callback(item.callback_handle)
            del self._monitored_datachange[item.callback_handle]
        listening = self._monitored_events.get(item.read_value_id.NodeId, [])
        if mid in listening:
            listening.remove(mid)
        return _GOOD

    def _check_value_filter(self, monitored: ua.ReadValueId, asked: Any) -> ua.StatusCode:
        """Return whether values can be monitored with a filter. A deadband applies to numbers (OPC 10000-8, 7.2)."""
        if monitored.DataEncoding is not None and monitored.DataEncoding.Name:
            current = self.aspace.read_attribute_value(monitored.NodeId, monitored.AttributeId)
            encoding = current.StatusCode if current.StatusCode.is_bad() else check_encoding(monitored, current)
            if encoding.is_bad():
                return encoding
        if monitored.IndexRange and not is_valid_range(monitored.IndexRange):
            return _bad(ua.StatusCodes.BadIndexRangeInvalid)
        match asked:
            case None | ua.ExtensionObject(TypeId=ua.NodeId(Identifier=0)):
                return _GOOD
            case DataChangeFilter(DeadbandType=ua.DeadbandType.None_):
                return _GOOD
            case DataChangeFilter(DeadbandType=ua.DeadbandType.Absolute) if not asked.DeadbandValue >= 0:
                return _bad(ua.StatusCodes.BadDeadbandFilterInvalid)
            case DataChangeFilter(DeadbandType=ua.DeadbandType.Absolute):
                value = self.aspace.read_attribute_value(monitored.NodeId, monitored.AttributeId).Value
                is_number = value is not None and value.VariantType in _NUMBERS and not value.is_array
                return _GOOD if is_number else _bad(ua.StatusCodes.BadFilterNotAllowed)
            case ua.EventFilter():
                return _bad(ua.StatusCodes.BadFilterNotAllowed)
            case _:
                return _bad(ua.StatusCodes.BadMonitoredItemFilterUnsupported)


def _is_reported(last: ua.DataValue, current: ua.DataValue, asked: Any) -> bool:
    """Return whether a change must be reported (OPC 10000-4, 7.22.2)."""
    trigger = asked.Trigger if isinstance(asked, DataChangeFilter) else ua.DataChangeTrigger.StatusValue
    if last.StatusCode != current.StatusCode:
        return True
    if trigger == ua.DataChangeTrigger.Status:
        return False
    if last.Value != current.Value:
        return not (isinstance(asked, DataChangeFilter) and _is_within_deadband(last.Value, current.Value, asked))
    return bool(
        trigger == ua.DataChangeTrigger.StatusValueTimestamp and last.SourceTimestamp != current.SourceTimestamp
    )


def _is_within_deadband(last: ua.Variant, current: ua.Variant, asked: DataChangeFilter) -> bool:
    if asked.DeadbandType != ua.DeadbandType.Absolute or last.Value is None or current.Value is None:
        return False
    return bool(abs(current.Value - last.Value) <= asked.DeadbandValue)
