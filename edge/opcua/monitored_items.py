"""Monitored items of values and events; items that could never report are refused (OPC 10000-4, 5.13.2).

asyncua accepts any filter: it fails at the first notification, or answers a whole request with a fault when one item is
invalid. Its queues always discard the oldest notification and report no overflow.
"""

from collections import deque
from collections.abc import Iterable, MutableMapping, Sequence
from itertools import count
from typing import Any

from asyncua import ua
from asyncua.common.utils import ServiceError
from asyncua.server.address_space import AddressSpace
from asyncua.ua.uaprotocol_auto import DataChangeFilter  # as it is read; `ua` has another by this name
from msgspec import Struct, field

from edge.opcua.answer_encoding import EncodedEvent, Part
from edge.opcua.event_filter import event_filter_result, event_filter_status, has_unknown_fields
from edge.opcua.limits import MAX_PUBLISHING_INTERVAL_MS, NOTIFICATIONS_PER_MESSAGE, ServerLimits, clamp
from edge.opcua.notification_queue import Notification, TakenNotifications, add_event, add_value, overflow_event
from edge.opcua.request_counts import SubscriptionCounts
from edge.opcua.time_slices import Turn
from edge.opcua.value_reads import check_encoding, is_valid_range, part_of, stamp_change

_HANDLES = count()


class MonitoredItem(Struct, eq=False):
    """One monitored item: what its client asked for, and the notifications that wait."""

    monitored_item_id: int
    client_handle: int
    read_value_id: ua.ReadValueId
    mode: ua.MonitoringMode
    filter: Any
    queue_size: int
    timestamps: ua.TimestampsToReturn
    discards_oldest: bool
    place: MutableMapping[int, Any] = {}
    """The callbacks of the attribute that it monitors; empty for events."""
    handle: int = field(default_factory=lambda: next(_HANDLES))
    """The key of its callback there."""
    deadband: float = 0.0
    """Changes up to this are not reported."""
    last: ua.DataValue | None = None
    """The value that was reported last."""
    overflow: EncodedEvent | None = None
    """The event that reports that events were discarded."""
    queue: list[Notification] = field(default_factory=list)
    """Notifications to be published."""
    sampled: deque[Notification] = field(default_factory=deque)
    """Notifications that another item has to trigger."""

    @property
    def is_of_events(self) -> bool:
        """Whether it monitors the events of a node."""
        return bool(self.read_value_id.AttributeId == ua.AttributeIds.EventNotifier)


class TriggerLinks:
    """The links between the items of one subscription."""

    def __init__(self, max_links: int) -> None:
        self._max_links = max_links
        self._links: dict[int, dict[int, None]] = {}

    def add(self, trigger: int, linked: int) -> bool:
        """Add a link; return False when there are too many."""
        links = self._links.setdefault(trigger, {})
        if linked not in links and sum(map(len, self._links.values())) >= self._max_links:
            return False
        links[linked] = None
        return True

    def remove(self, trigger: int, linked: int) -> bool:
        """Remove a link; return whether it was there."""
        links = self._links.get(trigger, {})
        is_linked = linked in links
        links.pop(linked, None)
        return is_linked

    def forget(self, item: int) -> None:
        """Remove the links from an item that was deleted, and to it."""
        self._links.pop(item, None)
        for links in self._links.values():
            links.pop(item, None)

    def linked(self, trigger: int) -> Iterable[int]:
        """Return the items that an item triggers."""
        return tuple(self._links.get(trigger, ()))


_NUMBERS = frozenset(
    ua.VariantType(number) for number in range(ua.VariantType.SByte.value, ua.VariantType.String.value)
)

_PERCENT = 100
_HAS_PROPERTY = ua.NodeId(ua.ObjectIds.HasProperty)
_EU_RANGE = ua.QualifiedName("EURange")

_FIRST_ID = 1000
"""Ids are not taken for client handles, which most clients count from 0 or 1."""

_GOOD = ua.StatusCode()


def _bad_item(is_unknown: bool) -> ua.StatusCode:  # noqa: FBT001 - the condition itself
    return ua.StatusCode(ua.StatusCodes.BadMonitoredItemIdInvalid if is_unknown else ua.StatusCodes.Good)


def _bad(code: int) -> ua.StatusCode:
    return ua.StatusCode(code)


class MonitoredItems:
    """The monitored items of one subscription, and the maximum of notifications per message (0: all)."""

    def __init__(
        self, aspace: AddressSpace, max_notifications: int, limits: ServerLimits, counts: SubscriptionCounts
    ) -> None:
        self._aspace = aspace
        self._limits = limits
        self._counts = counts
        self._items: dict[int, MonitoredItem] = {}
        self._of_events: dict[ua.NodeId, dict[int, MonitoredItem]] = {}
        self._ready: dict[int, MonitoredItem] = {}
        """The items with notifications to be published, in the order of the oldest of each."""
        self._ids = count(_FIRST_ID)
        self._triggers = TriggerLinks(limits.monitored_items_of_session)
        self.limit_notifications(max_notifications)

    def limit_notifications(self, requested: int) -> None:
        """Set the maximum of notifications per message (0: all)."""
        self.max_notifications = min(requested or NOTIFICATIONS_PER_MESSAGE, NOTIFICATIONS_PER_MESSAGE)

    def __len__(self) -> int:
        return len(self._items)

    def handles(self) -> tuple[list[int], list[int]]:
        """Return the ids and the client handles of all items."""
        return list(self._items), [item.client_handle for item in self._items.values()]

    @property
    def disabled(self) -> int:
        """The number of disabled items."""
        return sum(item.mode is ua.MonitoringMode.Disabled for item in self._items.values())

    def of_events(self, notifier: ua.NodeId | None = None) -> list[MonitoredItem]:
        """Return the enabled items of the events of a node, or of every node."""
        nodes = self._of_events.values() if notifier is None else (self._of_events.get(notifier, {}),)
        return [item for items in nodes for item in items.values() if item.mode is not ua.MonitoringMode.Disabled]

    async def create(
        self, request: ua.MonitoredItemCreateRequest, timestamps: ua.TimestampsToReturn, interval_ms: float
    ) -> ua.MonitoredItemCreateResult:
        """Create an item; its first value is queued before this returns."""
        monitored, asked = request.ItemToMonitor, request.RequestedParameters
        is_of_events = monitored.AttributeId == ua.AttributeIds.EventNotifier
        most = self._limits.queued_events if is_of_events else self._limits.queued_values
        item = MonitoredItem(
            monitored_item_id=next(self._ids),
            client_handle=asked.ClientHandle,
            read_value_id=monitored,
            mode=request.MonitoringMode,
            filter=asked.Filter,
            queue_size=_queue_size(asked, most, is_of_events=is_of_events),
            timestamps=timestamps,
            discards_oldest=asked.DiscardOldest,
            deadband=self._deadband(monitored.NodeId, asked.Filter),
        )
        result = ua.MonitoredItemCreateResult(
            StatusCode=self._check_events(item) if is_of_events else self._check_value_filter(monitored, asked.Filter)
        )
        if is_of_events and (result.StatusCode.is_bad() or has_unknown_fields(asked.Filter, self._aspace)):
            result.FilterResult = event_filter_result(asked.Filter, self._aspace)
        if result.StatusCode.is_good():
            result.StatusCode = await self._start(item)
        if result.StatusCode.is_good():
            result.MonitoredItemId = item.monitored_item_id
            result.RevisedQueueSize = item.queue_size
            result.RevisedSamplingInterval = _sampling_interval(asked, interval_ms)
        return result

    async def _start(self, item: MonitoredItem) -> ua.StatusCode:
        node_id, attribute = item.read_value_id.NodeId, item.read_value_id.AttributeId
        if item.is_of_events:
            self._of_events.setdefault(node_id, {})[item.monitored_item_id] = item
        elif node_id not in self._aspace:
            return _bad(ua.StatusCodes.BadNodeIdUnknown)
        elif attribute not in self._aspace[node_id].attributes:
            return _bad(ua.StatusCodes.BadAttributeIdInvalid)
        else:

            async def on_change(_handle: int, value: ua.DataValue) -> None:
                await self._sample(item, value)

            item.place = self._aspace[node_id].attributes[attribute].datachange_callbacks
            item.place[item.handle] = on_change
        self._items[item.monitored_item_id] = item
        await self._sample_now(item)
        return _GOOD

    async def _sample_now(self, item: MonitoredItem) -> None:
        """Report the present value of an item."""
        if not item.is_of_events:
            value = self._aspace.read_attribute_value(item.read_value_id.NodeId, item.read_value_id.AttributeId)
            await self._sample(item, value)

    def modify(
        self, request: ua.MonitoredItemModifyRequest, timestamps: ua.TimestampsToReturn, interval_ms: float
    ) -> ua.MonitoredItemModifyResult:
        """Change an item."""
        item, asked = self._items.get(request.MonitoredItemId), request.RequestedParameters
        if item is None:
            return ua.MonitoredItemModifyResult(StatusCode=_bad_item(is_unknown=True))
        is_of_events = item.is_of_events
        status = (
            event_filter_status(asked.Filter, self._aspace)
            if is_of_events
            else self._check_value_filter(item.read_value_id, asked.Filter)
        )
        if status.is_bad():
            return ua.MonitoredItemModifyResult(
                StatusCode=status, FilterResult=event_filter_result(asked.Filter, self._aspace)
            )
        most = self._limits.queued_events if is_of_events else self._limits.queued_values
        item.client_handle = asked.ClientHandle
        item.filter = asked.Filter
        item.deadband = self._deadband(item.read_value_id.NodeId, asked.Filter)
        item.queue_size = _queue_size(asked, most, is_of_events=is_of_events)
        item.timestamps = timestamps
        item.discards_oldest = asked.DiscardOldest
        item.overflow = None
        return ua.MonitoredItemModifyResult(
            RevisedSamplingInterval=_sampling_interval(asked, interval_ms), RevisedQueueSize=item.queue_size
        )

    def delete(self, item_id: int) -> ua.StatusCode:
        """Delete an item with the notifications that wait."""
        item = self._items.pop(item_id, None)
        if item is None:
            return _bad_item(is_unknown=True)
        self._ready.pop(item_id, None)
        self._triggers.forget(item_id)
        self._of_events.get(item.read_value_id.NodeId, {}).pop(item_id, None)
        item.place.pop(item.handle, None)
        return _GOOD

    def clear(self) -> None:
        """Delete all items."""
        for item_id in tuple(self._items):
            self.delete(item_id)

    async def set_mode(self, mode: ua.MonitoringMode, item_id: int) -> ua.StatusCode:
        """Set the mode of an item: a disabled item drops its notifications, a reporting one sends its sample."""
        item = self._items.get(item_id)
        if item is None:
            return _bad_item(is_unknown=True)
        previous, item.mode = item.mode, mode
        if mode is ua.MonitoringMode.Disabled:
            item.last = None
            item.sampled.clear()
            item.queue.clear()
            self._ready.pop(item_id, None)
        elif previous is ua.MonitoringMode.Disabled:
            await self._sample_now(item)
        if mode is ua.MonitoringMode.Reporting:
            self._report_sampled(item)
        return _GOOD

    def set_triggering(self, trigger: int, to_add: Sequence[int], to_remove: Sequence[int]) -> ua.SetTriggeringResult:
        """Link items to the item that triggers them. Raises ServiceError for an unknown one."""
        if trigger not in self._items:
            raise ServiceError(ua.StatusCodes.BadMonitoredItemIdInvalid)
        removed = [_bad_item(not self._triggers.remove(trigger, index)) for index in to_remove]
        added = [_bad_item(index not in self._items or not self._triggers.add(trigger, index)) for index in to_add]
        return ua.SetTriggeringResult(AddResults=added, RemoveResults=removed)

    async def resend(self, turn: Turn) -> None:
        """Report the value of every reporting item again (OPC 10000-5, 9.2)."""
        for item in tuple(self._items.values()):
            if item.mode is ua.MonitoringMode.Reporting:
                item.last = None
                await self._sample_now(item)
            await turn.step()

    async def _sample(self, item: MonitoredItem, value: ua.DataValue) -> None:
        """Queue a value, unless the monitored part of it is unchanged."""
        if item.mode is ua.MonitoringMode.Disabled:
            return
        text = item.read_value_id.IndexRange
        current = part_of(value, text) if text else value
        # Values are never changed in place: asyncua would copy each value to compare it with the next.
        if item.last is None or _is_reported(item.last, current, item):
            item.last = current
            stamped = stamp_change(current, item.timestamps)
            await self.notify(item, ua.MonitoredItemNotification(item.client_handle, stamped))

    async def notify(self, item: MonitoredItem, notification: Notification) -> None:
        """Queue a notification: to be published, or until another item triggers it."""
        if item.mode is ua.MonitoringMode.Sampling:
            item.sampled.append(notification)
            while len(item.sampled) > item.queue_size:
                item.sampled.popleft()
        else:
            self._enqueue(item, notification)
        for linked in self._triggers.linked(item.monitored_item_id):
            if linked in self._items:
                self._report_sampled(self._items[linked])

    def _report_sampled(self, item: MonitoredItem) -> None:
        while item.sampled:
            self._enqueue(item, item.sampled.popleft())

    def _enqueue(self, item: MonitoredItem, notification: Notification) -> None:
        if isinstance(notification, ua.MonitoredItemNotification):
            full = add_value(item.queue, notification, item.queue_size, discards_oldest=item.discards_oldest)
            self._counts.value_overflows += full
        else:
            if item.overflow is None:
                item.overflow = overflow_event(item.client_handle, item.filter)
            full = add_event(
                item.queue, notification, item.queue_size, item.overflow, discards_oldest=item.discards_oldest
            )
            self._counts.event_overflows += full
        self._ready[item.monitored_item_id] = item

    @property
    def has_notifications(self) -> bool:
        """Whether notifications wait to be published."""
        return bool(self._ready)

    def take(self, room: int) -> Sequence[Part]:
        """Take the notifications of the next message, encoded in at most `room` bytes; values come before events."""
        taken = TakenNotifications(room, self.max_notifications)
        for item in sorted(self._ready.values(), key=lambda item: item.is_of_events):
            at = 0
            while at < len(item.queue) and taken.add(item.queue[at]):
                at += 1
            del item.queue[:at]
            if item.queue:
                break
            del self._ready[item.monitored_item_id]
        self._counts.values += len(taken.values)
        self._counts.events += len(taken.events)
        return taken.encoded()

    def _check_events(self, item: MonitoredItem) -> ua.StatusCode:
        notifier = self._aspace.read_attribute_value(item.read_value_id.NodeId, ua.AttributeIds.EventNotifier)
        if notifier.StatusCode.is_bad():
            return notifier.StatusCode
        if not notifier.Value.Value & 1 << ua.EventNotifier.SubscribeToEvents:
            return _bad(ua.StatusCodes.BadNotSupported)
        return event_filter_status(item.filter, self._aspace)

    def _deadband(self, node_id: ua.NodeId, asked: Any) -> float:
        """Return the change that a filter leaves out: of a value, or of its range (OPC 10000-8, 7.2)."""
        match asked:
            case DataChangeFilter(DeadbandType=ua.DeadbandType.Absolute):
                return float(asked.DeadbandValue)
            case DataChangeFilter(DeadbandType=ua.DeadbandType.Percent) if (span := self._range(node_id)) is not None:
                return float(asked.DeadbandValue) / _PERCENT * (span.High - span.Low)
            case _:
                return 0.0

    def _range(self, node_id: ua.NodeId) -> ua.Range | None:
        """Return the EURange of an analog item; None for all others."""
        if node_id not in self._aspace:
            return None
        for reference in self._aspace[node_id].references:
            if reference.IsForward and reference.ReferenceTypeId == _HAS_PROPERTY and reference.BrowseName == _EU_RANGE:
                value = self._aspace.read_attribute_value(reference.NodeId, ua.AttributeIds.Value).Value
                return value.Value if value is not None and isinstance(value.Value, ua.Range) else None
        return None

    def _check_value_filter(self, monitored: ua.ReadValueId, asked: Any) -> ua.StatusCode:
        """Return whether values can be monitored with a filter. A deadband applies to numbers (OPC 10000-8, 7.2)."""
        if monitored.DataEncoding is not None and monitored.DataEncoding.Name:
            current = self._aspace.read_attribute_value(monitored.NodeId, monitored.AttributeId)
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
            case DataChangeFilter(DeadbandType=ua.DeadbandType.Percent) if not 0 <= asked.DeadbandValue <= _PERCENT:
                return _bad(ua.StatusCodes.BadDeadbandFilterInvalid)
            case DataChangeFilter(DeadbandType=ua.DeadbandType.Percent):
                is_value = monitored.AttributeId == ua.AttributeIds.Value
                has_range = is_value and self._range(monitored.NodeId) is not None
                return _GOOD if has_range else _bad(ua.StatusCodes.BadFilterNotAllowed)
            case DataChangeFilter(DeadbandType=ua.DeadbandType.Absolute):
                value = self._aspace.read_attribute_value(monitored.NodeId, monitored.AttributeId).Value
                is_number = value is not None and value.VariantType in _NUMBERS and not value.is_array
                return _GOOD if is_number else _bad(ua.StatusCodes.BadFilterNotAllowed)
            case ua.EventFilter():
                return _bad(ua.StatusCodes.BadFilterNotAllowed)
            case _:
                return _bad(ua.StatusCodes.BadMonitoredItemFilterUnsupported)


def _is_reported(last: ua.DataValue, current: ua.DataValue, item: MonitoredItem) -> bool:
    """Return whether a change must be reported (OPC 10000-4, 7.22.2)."""
    asked = item.filter
    trigger = asked.Trigger if isinstance(asked, DataChangeFilter) else ua.DataChangeTrigger.StatusValue
    if last.StatusCode != current.StatusCode:
        return True
    if trigger == ua.DataChangeTrigger.Status:
        return False
    if last.Value != current.Value:
        return not _is_within_deadband(last.Value, current.Value, item.deadband)
    return bool(
        trigger == ua.DataChangeTrigger.StatusValueTimestamp and last.SourceTimestamp != current.SourceTimestamp
    )


def _is_within_deadband(last: ua.Variant | None, current: ua.Variant | None, deadband: float) -> bool:
    if not deadband or last is None or current is None or last.Value is None or current.Value is None:
        return False
    return bool(abs(current.Value - last.Value) <= deadband)


def _sampling_interval(asked: ua.MonitoringParameters, shortest_ms: float) -> float:
    """Return the interval that the client asks for, the publishing interval at the least."""
    return clamp(asked.SamplingInterval, shortest_ms, max(shortest_ms, MAX_PUBLISHING_INTERVAL_MS))


def _queue_size(asked: ua.MonitoringParameters, most: int, *, is_of_events: bool) -> int:
    """Return the size of the queue; 0 asks for the default: all events, or the last value (OPC 10000-4, 7.21)."""
    return min(asked.QueueSize or (most if is_of_events else 1), most)
