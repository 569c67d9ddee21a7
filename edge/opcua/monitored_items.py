"""Monitored items of values and events; items that could never report are refused (OPC 10000-4, 5.13.2).

asyncua takes any filter: it fails on one at the first notification, or answers with a fault for all items of a
request when one of them is odd.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.server.address_space import AddressSpace
from asyncua.server.internal_subscription import InternalSubscription
from asyncua.server.monitored_item_service import MonitoredItemService
from asyncua.ua.uaprotocol_auto import DataChangeFilter  # as it is read; `ua` has another by this name

from edge.opcua.index_range import is_valid, part
from edge.opcua.limits import FILTER_ELEMENTS, NOTIFICATIONS_PER_MESSAGE

_Operator = ua.FilterOperator

# How many operands each operator takes (OPC 10000-4, 7.7.3), for those that asyncua knows.
_OPERANDS: Mapping[ua.FilterOperator, range] = MappingProxyType(
    {
        **dict.fromkeys((_Operator.IsNull, _Operator.Not, _Operator.OfType), range(1, 2)),
        **dict.fromkeys((_Operator.Equals, _Operator.And, _Operator.Or), range(2, 3)),
        **dict.fromkeys((_Operator.GreaterThan, _Operator.GreaterThanOrEqual), range(2, 3)),
        **dict.fromkeys((_Operator.LessThan, _Operator.LessThanOrEqual), range(2, 3)),
        _Operator.Between: range(3, 4),
        _Operator.InList: range(2, FILTER_ELEMENTS),
    }
)
_NUMBERS = frozenset(
    ua.VariantType(number) for number in range(ua.VariantType.SByte.value, ua.VariantType.String.value)
)

_GOOD = ua.StatusCode()


def _bad(code: int) -> ua.StatusCode:
    return ua.StatusCode(code)


class MonitoredItems(MonitoredItemService):
    """The monitored items of one subscription, and the most notifications its client wants at once (0: all)."""

    def __init__(self, subscription: InternalSubscription, aspace: AddressSpace, max_notifications: int) -> None:
        super().__init__(subscription, aspace)
        self.max_notifications = min(max_notifications or NOTIFICATIONS_PER_MESSAGE, NOTIFICATIONS_PER_MESSAGE)
        self.has_more = False
        """Whether the last message left notifications for the next."""
        self._last: dict[int, ua.DataValue] = {}

    def _create_events_monitored_item(self, params: ua.MonitoredItemCreateRequest) -> ua.MonitoredItemCreateResult:
        asked = params.RequestedParameters.Filter
        status = self.aspace.read_attribute_value(params.ItemToMonitor.NodeId, ua.AttributeIds.EventNotifier).StatusCode
        status = status if status.is_bad() else _check_event_filter(asked)
        if status.is_bad():
            return ua.MonitoredItemCreateResult(StatusCode=status, FilterResult=_filter_result(asked))
        return super()._create_events_monitored_item(params)

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
        status = _check_event_filter(asked) if is_of_events else self._check_value_filter(item.read_value_id, asked)
        if status.is_bad():
            return ua.MonitoredItemModifyResult(StatusCode=status, FilterResult=_filter_result(asked))
        return super()._modify_monitored_item(params)

    async def datachange_callback(self, handle: int, value: ua.DataValue, error: ua.StatusCode | None = None) -> None:
        """Queue a value, unless the monitored part of it is unchanged."""
        item_id = self._monitored_datachange.get(handle)
        item = self._monitored_items.get(item_id)
        if item is None or item.mode is ua.MonitoringMode.Disabled:
            return
        text = item.read_value_id and item.read_value_id.IndexRange
        current = part(value, text) if text else value
        last = self._last.get(item_id)
        # Values are never changed in place: asyncua would copy each one deeply to compare it with the next.
        if last is None or _is_reported(last, current, item.filter):
            self._last[item_id] = current
            notification = ua.MonitoredItemNotification(item.client_handle, current)
            await self.isub.enqueue_datachange_event(item_id, notification, item.queue_size)

    def _delete_monitored_items(self, mid: int) -> ua.StatusCode:
        # By the handles of the item: asyncua looks through all items for each one it deletes.
        item = self._monitored_items.pop(mid, None)
        if item is None:
            return _bad(ua.StatusCodes.BadMonitoredItemIdInvalid)
        self._last.pop(mid, None)
        if item.callback_handle in self._monitored_datachange:
            self.aspace.delete_datachange_callback(item.callback_handle)
            del self._monitored_datachange[item.callback_handle]
        listening = self._monitored_events.get(item.read_value_id.NodeId, [])
        if mid in listening:
            listening.remove(mid)
        return _GOOD

    def _check_value_filter(self, monitored: ua.ReadValueId, asked: Any) -> ua.StatusCode:
        """Return whether values can be monitored so. A dead band is one of numbers (OPC 10000-8, 7.2)."""
        if monitored.IndexRange and not is_valid(monitored.IndexRange):
            return _bad(ua.StatusCodes.BadIndexRangeInvalid)
        match asked:
            case None | ua.ExtensionObject(TypeId=ua.NodeId(Identifier=0)):
                return _GOOD
            case DataChangeFilter(DeadbandType=ua.DeadbandType.None_):
                return _GOOD
            case DataChangeFilter(DeadbandType=ua.DeadbandType.Absolute):
                value = self.aspace.read_attribute_value(monitored.NodeId, monitored.AttributeId).Value
                is_number = value is not None and value.VariantType in _NUMBERS and not value.is_array
                return _GOOD if is_number else _bad(ua.StatusCodes.BadFilterNotAllowed)
            case ua.EventFilter():
                return _bad(ua.StatusCodes.BadFilterNotAllowed)
            case _:
                return _bad(ua.StatusCodes.BadMonitoredItemFilterUnsupported)


def _is_reported(last: ua.DataValue, current: ua.DataValue, asked: Any) -> bool:
    """Return whether a change is one to report (OPC 10000-4, 7.22.2)."""
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


def _check_event_filter(asked: Any) -> ua.StatusCode:
    """Return whether events can be filtered so."""
    match asked:
        case ua.EventFilter():
            elements = _elements(asked)
            is_sound = bool(asked.SelectClauses) and not any(_fault(element) for element in elements)
            return _GOOD if is_sound else _bad(ua.StatusCodes.BadEventFilterInvalid)
        case None | ua.ExtensionObject(TypeId=ua.NodeId(Identifier=0)):
            return _bad(ua.StatusCodes.BadMonitoredItemFilterInvalid)
        case _:
            return _bad(ua.StatusCodes.BadFilterNotAllowed)


def _elements(asked: ua.EventFilter) -> list[ua.ContentFilterElement]:
    return list((asked.WhereClause and asked.WhereClause.Elements) or ())


def _fault(element: ua.ContentFilterElement) -> int:
    """Return what is wrong with an element of a where clause; 0 when nothing is."""
    takes = _OPERANDS.get(element.FilterOperator)
    if takes is None:
        return int(ua.StatusCodes.BadFilterOperatorUnsupported)
    return 0 if len(element.FilterOperands or ()) in takes else int(ua.StatusCodes.BadFilterOperandCountMismatch)


def _filter_result(asked: Any) -> Any:
    """Return the fault of each part of an event filter (OPC 10000-4, 7.22.3)."""
    if not isinstance(asked, ua.EventFilter):
        return ua.ExtensionObject()
    elements = [ua.ContentFilterElementResult(StatusCode=_bad(_fault(element))) for element in _elements(asked)]
    return ua.EventFilterResult(
        SelectClauseResults=[_GOOD] * len(asked.SelectClauses or ()),
        WhereClauseResult=ua.ContentFilterResult(ElementResults=elements),
    )
