"""Reads the numbers of an input: a list of numbers, or of samples."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from edge.features.flows.nodes.kind import NodeError
from edge.foundation.text import Text

Number: TypeAlias = int | float


def require_list(value: object) -> Sequence[Any]:
    """Return the input as a list; raises NodeError."""
    if not isinstance(value, (list, tuple)):
        raise NodeError(
            Text.of("the input is {found}; this node takes a list of numbers or samples", found=describe(value))
        )
    return value


def number_of(item: object) -> Number:
    """Return a number, or that of a sample; raises NodeError for anything else."""
    value = item.get("value") if isinstance(item, Mapping) else item
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NodeError(
            Text.of("the list holds {found}; this node takes numbers or samples of numbers", found=describe(value))
        )
    return value


def time_of(item: object) -> Number:
    """Return the time of a sample in milliseconds since the epoch; raises NodeError for anything else."""
    at = item.get("at") if isinstance(item, Mapping) else None
    if isinstance(at, bool) or not isinstance(at, (int, float)):
        raise NodeError(Text.of('a rate needs samples with their time; set "samples": true at the tag.window'))
    return at


def is_finite(value: Number) -> bool:
    """Return whether a number is known and fits into a double."""
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


def finite(value: Number) -> Number | None:
    """Return a result; None, that is unknown, for infinity, NaN and integers that do not fit into a double."""
    return value if is_finite(value) else None


def describe(value: object) -> Text:
    """Return what kind of JSON value this is, for an error."""
    match value:
        case None:
            return Text.of("null")
        case bool():
            return Text.of("a boolean")
        case int() | float():
            return Text.of("a number")
        case str():
            return Text.of("a text")
        case list() | tuple():
            return Text.of("a list")
        case _:
            return Text.of("an object")
