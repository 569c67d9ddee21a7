"""Monitors values and events, and refuses each item nobody could be told of (OPC 10000-4, 5.13.2).

asyncua takes any filter: it fails on one when there is something to tell, or answers with a fault for all items of a
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
from edge.opcua.limits import FILTER_ELEMENTS

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
    """The monitored items of one subscription, and how much of them its client wants to be told at once (0: all)."""

    def __init__(self, subscription: InternalSubscription, aspace: AddressSpace, max_notifications: int) -> None:
        super().__init__(subscription, aspace)
        self.max_notifications = max_notifications

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
        """Have a value told, unless the part of it that is monitored is as it was."""
        item = self._monitored_items[self._monitored_datachange[handle]]
        text = item.read_value_id and item.read_value_id.IndexRange
        await super().datachange_callback(handle, part(value, text) if text else value, error)

    def _check_value_filter(self, monitored: ua.ReadValueId, asked: Any) -> ua.StatusCode:
        """Tell whether values can be monitored so. A dead band is one of numbers (OPC 10000-8, 7.2)."""
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


def _check_event_filter(asked: Any) -> ua.StatusCode:
    """Tell whether events can be filtered so."""
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
    """Say what is wrong with an element of a where clause; 0 when nothing is."""
    takes = _OPERANDS.get(element.FilterOperator)
    if takes is None:
        return int(ua.StatusCodes.BadFilterOperatorUnsupported)
    return 0 if len(element.FilterOperands or ()) in takes else int(ua.StatusCodes.BadFilterOperandCountMismatch)


def _filter_result(asked: Any) -> Any:
    """Say of each part of an event filter what is wrong with it (OPC 10000-4, 7.22.3)."""
    if not isinstance(asked, ua.EventFilter):
        return ua.ExtensionObject()
    elements = [ua.ContentFilterElementResult(StatusCode=_bad(_fault(element))) for element in _elements(asked)]
    return ua.EventFilterResult(
        SelectClauseResults=[_GOOD] * len(asked.SelectClauses or ()),
        WhereClauseResult=ua.ContentFilterResult(ElementResults=elements),
    )
