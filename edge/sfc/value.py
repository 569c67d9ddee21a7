"""The values of conditions: JSON values and UNKNOWN, followed, compared and negated in three-valued logic."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, Final, TypeAlias


class Unknown(Enum):
    """The third truth value, and the value of a name that has none yet."""

    UNKNOWN = "unknown"


UNKNOWN: Final = Unknown.UNKNOWN
MAX_SHOWN_LENGTH: Final = 80
Truth: TypeAlias = "bool | Unknown"
Evaluate: TypeAlias = Callable[[Any], Any]
"""A part of a condition as a closure over the view of a run."""


class ConditionFaultError(Exception):
    """A condition that cannot be evaluated with the values at hand: its text and why."""


def show(value: object) -> str:
    """Write a value for a person, as the language spells it and not too long."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value) if isinstance(value, str) else f"{value}"
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}…"


def boolean(value: Evaluate, text: str) -> Evaluate:
    """Demand a truth value; what evaluates to anything else raises ConditionFaultError."""

    def evaluate(view: Any) -> Truth:
        result = value(view)
        if result is True or result is False or result is UNKNOWN:
            return result
        if result is None:
            return UNKNOWN
        raise ConditionFaultError(f"{text!r} is {show(result)}, which is neither true nor false")

    return evaluate


def negate(value: Evaluate) -> Evaluate:
    """Turn true into false and false into true."""

    def evaluate(view: Any) -> Truth:
        result = value(view)
        return UNKNOWN if result is UNKNOWN else not result

    return evaluate


def follow(value: Evaluate, tail: tuple[str | int, ...]) -> Evaluate:
    """Walk into a JSON value; what is not there is UNKNOWN."""
    if not tail:
        return value

    def evaluate(view: Any) -> Any:
        found = value(view)
        for part in tail:
            if isinstance(part, str) and isinstance(found, Mapping):
                found = found.get(part, UNKNOWN)
            elif isinstance(part, int) and isinstance(found, (list, tuple)) and part < len(found):
                found = found[part]
            else:
                return UNKNOWN
        return found

    return evaluate


def _kind(value: object) -> str:
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, (int, float)):
        return "a number"
    if isinstance(value, str):
        return "a string"
    return "a list" if isinstance(value, (list, tuple)) else "an object"


_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(word: str, left: Any, right: Any, text: str) -> Truth:
    """Compare two values of one kind; raises ConditionFaultError, which names the comparison, for others."""
    if left is UNKNOWN or right is UNKNOWN or left is None or right is None:
        return UNKNOWN
    kind, other = _kind(left), _kind(right)
    if kind != other:
        raise ConditionFaultError(f"{text!r} compares {kind} with {other} ({show(left)}, {show(right)})")
    if kind in {"a number", "a string"} or (kind == "true or false" and word in {"==", "!="}):
        return _OPERATORS[word](left, right)
    raise ConditionFaultError(f"{text!r}: {kind} cannot be compared like this")
