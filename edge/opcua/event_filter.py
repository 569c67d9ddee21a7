"""Validates and applies event filters: where clauses with three-valued logic, select clauses (OPC 10000-4, 7.4).

asyncua's OfType ignores subtypes, and its where clauses have neither Like nor the id of a condition.
"""

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field  # noqa: TID251 - a member is not shown
from datetime import datetime
from functools import lru_cache
from types import MappingProxyType
from typing import Any

from asyncua import ua
from asyncua.server.address_space import AddressSpace
from asyncua.ua.ua_binary import struct_to_binary

from edge.foundation.text import Text
from edge.opcua.access import session_text
from edge.opcua.limits import FILTER_BYTES, FILTER_ELEMENTS, SELECT_CLAUSES

Path = str
"""The names of a browse path, joined by `/`. No two fields of an event differ in their namespace only."""

_NULL = ua.Variant()
_NO_TYPE = ua.NodeId()
_BASE_EVENT = ua.NodeId(ua.ObjectIds.BaseEventType)
_LONGEST_PATTERN = 200
_Operator = ua.FilterOperator

_COMPARISONS: Mapping[ua.FilterOperator, Callable[[Any, Any], bool]] = MappingProxyType(
    {
        _Operator.Equals: operator.eq,
        _Operator.GreaterThan: operator.gt,
        _Operator.LessThan: operator.lt,
        _Operator.GreaterThanOrEqual: operator.ge,
        _Operator.LessThanOrEqual: operator.le,
    }
)


@dataclass(frozen=True, slots=True)
class EventRecord:
    """One event: its type and all supertypes, its fields by path, and the NodeId of its condition if it has one.

    `message` is its field Message, in the language of the session that reads it.
    """

    types: Sequence[ua.NodeId]
    fields: Mapping[Path, ua.Variant] = field(repr=False)
    condition: ua.NodeId | None = None
    message: Text | None = None

    def field(self, path: Path) -> ua.Variant:
        """Return a field; null for one that the event does not have."""
        if self.message is not None and path == "Message":
            return ua.Variant(session_text(self.message), ua.VariantType.LocalizedText)
        return self.fields.get(path, _NULL)


def select_fields(event: EventRecord, clauses: Iterable[ua.SimpleAttributeOperand]) -> list[ua.Variant]:
    """Return the selected fields; one that the event does not have is null (OPC 10000-4, 7.22.3)."""
    return [_field(event, clause) for clause in clauses]


def matches(where: ua.ContentFilter | None, event: EventRecord) -> bool:
    """Return whether an event passes a valid where clause; null counts as false."""
    elements = (where and where.Elements) or ()
    values: dict[int, Any] = {}
    # An element refers to later ones only: each is evaluated once, however many refer to it.
    for index in range(len(elements) - 1, -1, -1):
        values[index] = _evaluate(elements[index], values, event)
    return not elements or values[0] is True


def _field(event: EventRecord, clause: ua.SimpleAttributeOperand) -> ua.Variant:
    asked = clause.TypeDefinitionId
    if asked not in {_NO_TYPE, _BASE_EVENT} and asked not in event.types:
        return _NULL
    if clause.AttributeId == ua.AttributeIds.NodeId:
        is_condition = not clause.BrowsePath and event.condition is not None
        return ua.Variant(event.condition, ua.VariantType.NodeId) if is_condition else _NULL
    if clause.AttributeId != ua.AttributeIds.Value:
        return _NULL
    path = clause.BrowsePath or ()
    return event.field("/".join(value.Name or "" for value in path))


def _evaluate(element: ua.ContentFilterElement, later: Mapping[int, Any], event: EventRecord) -> Any:
    """Return the value of an element: True, False, or None for null; `later` has those of the elements behind it."""
    kind, operands = element.FilterOperator, element.FilterOperands

    def value(number: int) -> Any:
        return _operand(operands[number], later, event)

    if kind in _COMPARISONS:
        return _compare(_COMPARISONS[kind], value(0), value(1))
    match kind:
        case _Operator.OfType:
            return value(0) in event.types
        case _Operator.IsNull:
            return value(0) is None
        case _Operator.Not:
            found = _truth(value(0))
            return None if found is None else not found
        case _Operator.And:
            return _both(_truth(value(0)), _truth(value(1)), ends_at=False)
        case _Operator.Or:
            return _both(_truth(value(0)), _truth(value(1)), ends_at=True)
        case _Operator.Between:
            return _both(
                _compare(operator.ge, value(0), value(1)), _compare(operator.le, value(0), value(2)), ends_at=False
            )
        case _Operator.InList:
            sought = value(0)
            equal = [_compare(operator.eq, sought, value(number)) for number in range(1, len(operands))]
            return True if True in equal else (None if None in equal else False)
        case _Operator.Like:
            text, pattern = value(0), value(1)
            return _is_like(text, pattern)
        case _:
            return None


def _operand(operand: Any, later: Mapping[int, Any], event: EventRecord) -> Any:
    match operand:
        case ua.ElementOperand():
            return later[operand.Index]
        case ua.LiteralOperand():
            return operand.Value.Value if operand.Value is not None else None
        case ua.SimpleAttributeOperand():
            return _field(event, operand).Value
        case ua.AttributeOperand():
            names = [
                value.TargetName.Name or "" for value in (operand.BrowsePath and operand.BrowsePath.Elements) or ()
            ]
            return event.field("/".join(names)).Value
        case _:
            return None


def _compare(compare: Callable[[Any, Any], bool], left: Any, right: Any) -> bool | None:
    left, right = _comparable(left), _comparable(right)
    if left is None or right is None:
        return None
    try:
        return bool(compare(left, right))
    except TypeError:
        # They are of types that have no order, and cannot be converted.
        return None


def _comparable(value: Any) -> Any:
    match value:
        case ua.LocalizedText():
            return value.Text
        case ua.StatusCode():
            return value.value
        case datetime():
            return value.replace(tzinfo=None)
        case _:
            return value


def _truth(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _both(left: bool | None, right: bool | None, *, ends_at: bool) -> bool | None:  # noqa: FBT001 - values of clauses
    """Return And (`ends_at` False) or Or (`ends_at` True) of two values, of which either may be null."""
    if ends_at in {left, right}:
        return ends_at
    return None if None in {left, right} else not ends_at


def _is_like(text: Any, pattern: Any) -> bool | None:
    text, pattern = _comparable(text), _comparable(pattern)
    if not isinstance(text, str) or not isinstance(pattern, str) or len(pattern) > _LONGEST_PATTERN:
        return None
    compiled = _like(pattern)
    return None if compiled is None else compiled(text)


@lru_cache(maxsize=256)
def _like(pattern: str) -> Callable[[str], bool] | None:
    """Return the check of a pattern of Like: `%` any text, `_` one character, `[a-c]` and `[^a-c]` one of a set."""
    pieces, rest = [""], pattern
    while rest:
        head, rest = rest[0], rest[1:]
        match head:
            case "%":
                pieces.append("")
            case "_":
                pieces[-1] += "."
            case "\\" if rest:
                pieces[-1] += re.escape(rest[0])
                rest = rest[1:]
            case "[" if "]" in rest[1:]:
                body, _, rest = rest.partition("]")
                pieces[-1] += f"[{'^' if body[:1] == '^' else ''}{_set(body.removeprefix('^'))}]"
            case _:
                pieces[-1] += re.escape(head)
    try:
        compiled = [re.compile(piece, re.DOTALL) for piece in pieces]
    except re.error:
        return None
    return lambda text: _fits(compiled, text)


def _set(body: str) -> str:
    """Return the members of a set: `-` between two characters is a range, any other one is itself."""
    members, at = "", 0
    while at < len(body):
        is_range = body[at + 1 : at + 2] == "-" and at + 2 < len(body)
        members += f"{re.escape(body[at])}-{re.escape(body[at + 2])}" if is_range else re.escape(body[at])
        at += 3 if is_range else 1
    return members


def _fits(pieces: Sequence[re.Pattern[str]], text: str) -> bool:
    """Return whether the pieces follow one another in a text, with any text between them: in linear time each."""
    if len(pieces) == 1:
        return pieces[0].fullmatch(text) is not None
    start = pieces[0].match(text)
    if start is None:
        return False
    at = start.end()
    for piece in pieces[1:-1]:
        match = piece.search(text, at)
        if match is None:
            return False
        at = match.end()
    # Each piece has one length, so that the last one ends with the text.
    return any(pieces[-1].fullmatch(text, start) for start in range(at, len(text) + 1))


_S = ua.StatusCodes
_ATTRIBUTES = frozenset(int(attribute) for attribute in ua.AttributeIds)
_BASE_EVENT = ua.NodeId(ua.ObjectIds.BaseEventType)
_HAS_SUBTYPE = ua.NodeId(ua.ObjectIds.HasSubtype)
_HAS_FIELD = frozenset((ua.NodeId(ua.ObjectIds.HasProperty), ua.NodeId(ua.ObjectIds.HasComponent)))
_GOOD = ua.StatusCode()
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
            is_valid = _is_bounded(asked) and all(
                result.StatusCode.is_good() for result in _element_results(asked, aspace)
            )
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
        SelectClauseResults=[_select_result(clause, aspace) for clause in asked.SelectClauses],
        WhereClauseResult=ua.ContentFilterResult(ElementResults=_element_results(asked, aspace)),
    )


def has_unknown_fields(asked: ua.EventFilter, aspace: AddressSpace) -> bool:
    """Return whether a filter selects fields that no event has: they are null in every event."""
    return any(_select_result(clause, aspace).is_bad() for clause in asked.SelectClauses or ())


def _select_result(clause: ua.SimpleAttributeOperand, aspace: AddressSpace) -> ua.StatusCode:
    """Return whether an event can have a field (OPC 10000-4, 7.22.3)."""
    path = clause.BrowsePath or ()
    if not all(name and name.Name for name in path):
        return ua.StatusCode(_S.BadBrowseNameInvalid)
    if clause.AttributeId not in _ATTRIBUTES:
        return ua.StatusCode(_S.BadAttributeIdInvalid)
    kind = clause.TypeDefinitionId
    if not kind.is_null() and kind not in _event_types(aspace):
        return ua.StatusCode(_S.BadTypeDefinitionInvalid)
    if path and (path[0].NamespaceIndex, path[0].Name) not in _event_fields(aspace):
        return ua.StatusCode(_S.BadNodeIdUnknown)
    return _GOOD


@lru_cache(maxsize=1)
def _event_types(aspace: AddressSpace) -> frozenset[ua.NodeId]:
    """Return all types of events; they do not change while the server runs."""
    types, waiting = {_BASE_EVENT}, [_BASE_EVENT]
    while waiting:
        for reference in aspace[waiting.pop()].references:
            if reference.IsForward and reference.ReferenceTypeId == _HAS_SUBTYPE and reference.NodeId not in types:
                types.add(reference.NodeId)
                waiting.append(reference.NodeId)
    return frozenset(types)


@lru_cache(maxsize=1)
def _event_fields(aspace: AddressSpace) -> frozenset[tuple[int, str]]:
    """Return the names of the fields of all types of events."""
    return frozenset(
        (reference.BrowseName.NamespaceIndex, reference.BrowseName.Name)
        for kind in _event_types(aspace)
        for reference in aspace[kind].references
        if reference.IsForward and reference.ReferenceTypeId in _HAS_FIELD
    )


def _is_bounded(asked: ua.EventFilter) -> bool:
    return (
        0 < len(asked.SelectClauses or ()) <= SELECT_CLAUSES
        and len(_elements(asked)) <= FILTER_ELEMENTS
        and len(struct_to_binary(asked)) <= FILTER_BYTES
    )


def _elements(asked: ua.EventFilter) -> list[ua.ContentFilterElement]:
    return list((asked.WhereClause and asked.WhereClause.Elements) or ())


def _element_results(asked: ua.EventFilter, aspace: AddressSpace) -> list[ua.ContentFilterElementResult]:
    elements = _elements(asked)
    return [_element_result(element, range(index + 1, len(elements)), aspace) for index, element in enumerate(elements)]


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
    faults = [_operand_fault(operand, later) for operand in operands]
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
