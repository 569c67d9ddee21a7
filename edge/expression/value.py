"""The values of expressions: JSON values and UNKNOWN, compared and computed in three-valued logic.

`null`, NaN and the infinities are unknown. A number that a calculation takes or makes is unknown too when it is an
integer beyond 64 bits, so that no expression can use up time or memory.
"""

from __future__ import annotations

import math
import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from decimal import ROUND_HALF_UP, Decimal
from enum import Enum
from typing import Any, Final, TypeAlias

from edge.expression.syntax import Kind
from edge.foundation.text import Text


class UnknownValue(Enum):
    """The third truth value, and the value of a name that has none yet."""

    UNKNOWN = "unknown"


UNKNOWN: Final = UnknownValue.UNKNOWN
MAX_SHOWN_LENGTH: Final = 80
MAX_INTEGER: Final = 2**63 - 1
Truth: TypeAlias = "bool | UnknownValue"
Number: TypeAlias = "float | UnknownValue"
Evaluate: TypeAlias = Callable[[Any], Any]
"""A part of an expression as a closure over the context that its names are read from."""


class MemberSet(ABC):
    """A set of texts that is asked, not read."""

    __slots__ = ()

    @property
    @abstractmethod
    def text(self) -> Text:
        """Return the present state of the set for people."""

    @abstractmethod
    def has(self, member: str) -> Truth:
        """Return whether a text is a member; UNKNOWN when that is not known."""


class EvaluationError(Exception):
    """An expression cannot be evaluated with the values at hand: `text` names it, and the reason."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


def show(value: object) -> str:
    """Return a value as the language spells it, shortened to `MAX_SHOWN_LENGTH`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    text = repr(value) if isinstance(value, str) else f"{value}"
    return text if len(text) <= MAX_SHOWN_LENGTH else f"{text[:MAX_SHOWN_LENGTH]}…"


def is_unknown(value: object) -> bool:
    """Return whether a value counts as unknown: UNKNOWN, null, NaN or an infinity."""
    return value is UNKNOWN or value is None or (isinstance(value, float) and not math.isfinite(value))


def boolean(value: Evaluate, text: str) -> Evaluate:
    """Return a closure that requires a truth value; any other value raises EvaluationError."""

    def evaluate(context: Any) -> Truth:
        result = value(context)
        if result is True or result is False or result is UNKNOWN:
            return result
        if result is None:
            return UNKNOWN
        raise EvaluationError(
            Text.of("{term!r} is {value}, which is neither true nor false", term=text, value=show(result))
        )

    return evaluate


def negate(value: Evaluate) -> Evaluate:
    """Return a closure that turns true into false and false into true."""

    def evaluate(context: Any) -> Truth:
        result = value(context)
        return UNKNOWN if result is UNKNOWN else not result

    return evaluate


def follow(value: Evaluate, tail: tuple[str | int, ...]) -> Evaluate:
    """Return a closure that reads a part of a JSON value; a missing part is UNKNOWN."""
    if not tail:
        return value

    def evaluate(context: Any) -> Any:
        found = value(context)
        for part in tail:
            if isinstance(part, str) and isinstance(found, Mapping):
                found = found.get(part, UNKNOWN)
            elif isinstance(part, int) and isinstance(found, (list, tuple)) and part < len(found):
                found = found[part]
            else:
                return UNKNOWN
        return found

    return evaluate


def kind_of_value(value: object) -> Kind | None:
    """Return the kind of a value; None for lists and objects, with which the language does not calculate."""
    if isinstance(value, bool):
        return Kind.TRUTH
    if isinstance(value, (int, float)):
        return Kind.NUMBER
    return Kind.STRING if isinstance(value, str) else None


KIND_TEXTS: Final = {
    Kind.NUMBER: Text.of("a number"),
    Kind.STRING: Text.of("a string"),
    Kind.TRUTH: Text.of("true or false"),
}
_LIST: Final = Text.of("a list")
_OBJECT: Final = Text.of("an object")


def _kind_text(value: object) -> Text:
    kind = kind_of_value(value)
    if kind is not None:
        return KIND_TEXTS[kind]
    return _LIST if isinstance(value, (list, tuple)) else _OBJECT


_COMPARISONS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def compare(word: str, left: Any, right: Any, text: str) -> Truth:
    """Compare two values of one kind; others raise EvaluationError, which names the comparison."""
    if is_unknown(left) or is_unknown(right):
        return UNKNOWN
    kind, other = kind_of_value(left), kind_of_value(right)
    if kind is other and (kind in {Kind.NUMBER, Kind.STRING} or (kind is Kind.TRUTH and word in {"==", "!="})):
        return _COMPARISONS[word](left, right)
    one, two = _kind_text(left), _kind_text(right)
    if one is two:
        raise EvaluationError(Text.of("{term!r}: {kind} cannot be compared like this", term=text, kind=one))
    raise EvaluationError(
        Text.of(
            "{term!r} compares {kind} with {other} ({left}, {right})",
            term=text,
            kind=one,
            other=two,
            left=show(left),
            right=show(right),
        )
    )


def contains(element: Any, container: Any, text: str) -> Truth:
    """Return whether a set or list has an element; other values raise EvaluationError, which names the test.

    A set holds texts: a whole number is looked up by its digits. In a list, an element of another kind is another one.
    """
    if is_unknown(element) or is_unknown(container):
        return UNKNOWN
    kind = kind_of_value(element)
    if isinstance(container, MemberSet):
        if not isinstance(element, (str, int)) or isinstance(element, bool):
            raise EvaluationError(
                Text.of(
                    "{term!r} looks for {value}, which is neither a text nor a whole number",
                    term=text,
                    value=show(element),
                )
            )
        return container.has(str(element))
    if not isinstance(container, (list, tuple)):
        raise EvaluationError(
            Text.of("{term!r} looks into {value}, which is not a list", term=text, value=show(container))
        )
    if kind is None:
        raise EvaluationError(Text.of("{term!r} looks for {kind}", term=text, kind=_kind_text(element)))
    return any(kind_of_value(value) is kind and value == element for value in container)


def number(value: Any, text: str) -> Number:
    """Return a number, or UNKNOWN; a value that is not a number raises EvaluationError."""
    if is_unknown(value):
        return UNKNOWN
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise EvaluationError(Text.of("{term!r} is {value}, which is not a number", term=text, value=show(value)))
    return _bounded(value)


def _bounded(value: float) -> Number:
    if isinstance(value, int):
        return value if abs(value) <= MAX_INTEGER else UNKNOWN
    return value if math.isfinite(value) else UNKNOWN


_OPERATORS: Final[dict[str, Callable[[Any, Any], Any]]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "%": operator.mod,
}


def calculate(word: str, left: float, right: float) -> Number:
    """Return `left word right`; UNKNOWN for a division by zero and for a result that is out of bounds.

    `/` always makes a floating-point number. The remainder `%` has the sign of the divisor.
    """
    if right == 0 and word in {"/", "%"}:
        return UNKNOWN
    return _bounded(_OPERATORS[word](left, right))


def round_half_away(value: float, digits: int) -> Number:
    """Return a number rounded to decimal places, halves away from zero; without decimal places an integer."""
    if isinstance(value, int):
        return value
    rounded = Decimal(repr(value)).quantize(Decimal(1).scaleb(-digits), ROUND_HALF_UP) if abs(value) < _EXACT else value
    return _bounded(float(rounded) if digits else int(rounded))


_EXACT: Final = 2.0**53
"""From here on every floating-point number is an integer."""
