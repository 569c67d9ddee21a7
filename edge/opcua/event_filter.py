"""Applies event filters: where clauses with three-valued logic, and select clauses (OPC 10000-4, 7.4 and 7.7).

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
    """One event: its type and all supertypes, its fields by path, and the NodeId of its condition if it has one."""

    types: Sequence[ua.NodeId]
    fields: Mapping[Path, ua.Variant] = field(repr=False)
    condition: ua.NodeId | None = None


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
    return event.fields.get("/".join(each.Name or "" for each in path), _NULL)


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
            names = [each.TargetName.Name or "" for each in (operand.BrowsePath and operand.BrowsePath.Elements) or ()]
            return event.fields.get("/".join(names), _NULL).Value
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
        compiled = [re.compile(each, re.DOTALL) for each in pieces]
    except re.error:
        return None
    return lambda text: _fits(compiled, text)


def _set(body: str) -> str:
    return "".join(each if each == "-" else re.escape(each) for each in body)


def _fits(pieces: Sequence[re.Pattern[str]], text: str) -> bool:
    """Return whether the pieces follow one another in a text, with any text between them: in linear time each."""
    if len(pieces) == 1:
        return pieces[0].fullmatch(text) is not None
    start = pieces[0].match(text)
    if start is None:
        return False
    at = start.end()
    for piece in pieces[1:-1]:
        found = piece.search(text, at)
        if found is None:
            return False
        at = found.end()
    # Each piece has one length, so that the last one ends with the text.
    return any(pieces[-1].fullmatch(text, start) for start in range(at, len(text) + 1))
