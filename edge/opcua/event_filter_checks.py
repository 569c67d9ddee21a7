"""Validates event filters: the fault of each element and operand of a where clause (OPC 10000-4, 7.7 and 7.22.3)."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.server.address_space import AddressSpace

from edge.opcua.limits import FILTER_ELEMENTS, SELECT_CLAUSES

_S = ua.StatusCodes
_GOOD = ua.StatusCode()
_Operator = ua.FilterOperator
_TYPES = frozenset((ua.NodeClass.ObjectType, ua.NodeClass.VariableType))

# How many operands each operator takes (OPC 10000-4, 7.7.3), for those of `event_filter`.
_OPERANDS: Mapping[ua.FilterOperator, range] = MappingProxyType(
    {
        **dict.fromkeys((_Operator.IsNull, _Operator.Not, _Operator.OfType), range(1, 2)),
        **dict.fromkeys((_Operator.Equals, _Operator.And, _Operator.Or), range(2, 3)),
        **dict.fromkeys((_Operator.GreaterThan, _Operator.GreaterThanOrEqual), range(2, 3)),
        **dict.fromkeys((_Operator.LessThan, _Operator.LessThanOrEqual, _Operator.Like), range(2, 3)),
        _Operator.Between: range(3, 4),
        _Operator.InList: range(2, FILTER_ELEMENTS),
    }
)


def event_filter_status(asked: Any, aspace: AddressSpace) -> ua.StatusCode:
    """Return whether an event filter is valid."""
    match asked:
        case ua.EventFilter():
            is_valid = _is_bounded(asked) and all(each.StatusCode.is_good() for each in _element_results(asked, aspace))
            return _GOOD if is_valid else ua.StatusCode(_S.BadEventFilterInvalid)
        case None | ua.ExtensionObject(TypeId=ua.NodeId(Identifier=0)):
            return ua.StatusCode(_S.BadMonitoredItemFilterInvalid)
        case _:
            return ua.StatusCode(_S.BadFilterNotAllowed)


def event_filter_result(asked: Any, aspace: AddressSpace) -> Any:
    """Return the fault of each part of an event filter; of none when the filter has too many parts."""
    if not isinstance(asked, ua.EventFilter) or not _is_bounded(asked):
        return ua.ExtensionObject()
    return ua.EventFilterResult(
        SelectClauseResults=[_GOOD] * len(asked.SelectClauses),
        WhereClauseResult=ua.ContentFilterResult(ElementResults=_element_results(asked, aspace)),
    )


def _is_bounded(asked: ua.EventFilter) -> bool:
    return 0 < len(asked.SelectClauses or ()) <= SELECT_CLAUSES and len(_elements(asked)) <= FILTER_ELEMENTS


def _elements(asked: ua.EventFilter) -> list[ua.ContentFilterElement]:
    return list((asked.WhereClause and asked.WhereClause.Elements) or ())


def _element_results(asked: ua.EventFilter, aspace: AddressSpace) -> list[ua.ContentFilterElementResult]:
    elements = _elements(asked)
    return [_element_result(each, range(index + 1, len(elements)), aspace) for index, each in enumerate(elements)]


def _element_result(
    element: ua.ContentFilterElement, later: range, aspace: AddressSpace
) -> ua.ContentFilterElementResult:
    """Return the fault of an element, which may only refer to a later one: then no evaluation is without end."""
    takes = _OPERANDS.get(element.FilterOperator)
    if takes is None:
        return ua.ContentFilterElementResult(StatusCode=ua.StatusCode(_S.BadFilterOperatorUnsupported))
    operands = list(element.FilterOperands or ())
    if len(operands) not in takes:
        return ua.ContentFilterElementResult(StatusCode=ua.StatusCode(_S.BadFilterOperandCountMismatch))
    faults = [_operand_fault(each, later) for each in operands]
    if element.FilterOperator == _Operator.OfType and not _may_be_type(operands[0], aspace):
        faults[0] = int(_S.BadFilterLiteralInvalid)
    if not any(faults):
        return ua.ContentFilterElementResult()
    return ua.ContentFilterElementResult(
        StatusCode=ua.StatusCode(_S.BadFilterOperandInvalid),
        OperandStatusCodes=[ua.StatusCode(fault) for fault in faults],
    )


def _operand_fault(operand: Any, later: range) -> int:
    match operand:
        case ua.ElementOperand():
            return int(_S.Good if operand.Index in later else _S.BadFilterElementInvalid)
        case ua.LiteralOperand() | ua.SimpleAttributeOperand() | ua.AttributeOperand():
            return int(_S.Good)
        case _:
            return int(_S.BadFilterOperandInvalid)


def _may_be_type(operand: Any, aspace: AddressSpace) -> bool:
    """Return whether the operand of OfType can be a type; only a literal is known before the event."""
    if not isinstance(operand, ua.LiteralOperand):
        return True
    value = operand.Value.Value if operand.Value is not None else None
    if not isinstance(value, ua.NodeId) or value not in aspace:
        return False
    node_class = aspace[value].attributes[ua.AttributeIds.NodeClass].value
    return bool(node_class and node_class.Value and node_class.Value.Value in _TYPES)
