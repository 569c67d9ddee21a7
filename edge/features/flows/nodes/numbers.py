"""Reads the numbers of an input: a list of numbers, or of samples."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

from edge.features.flows.nodes.kind import NodeError

Number: TypeAlias = int | float


def require_list(value: object) -> Sequence[Any]:
    """Return the input as a list; raises NodeError."""
    if not isinstance(value, (list, tuple)):
        raise NodeError(f"the input is {describe(value)}; this node takes a list of numbers or samples")
    return value


def number_of(item: object) -> Number:
    """Return a number, or that of a sample; raises NodeError for anything else."""
    value = item.get("value") if isinstance(item, Mapping) else item
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise NodeError(f"the list holds {describe(value)}; this node takes numbers or samples of numbers")
    return value


def time_of(item: object) -> Number:
    """Return the time of a sample in milliseconds since the epoch; raises NodeError for anything else."""
    at = item.get("at") if isinstance(item, Mapping) else None
    if isinstance(at, bool) or not isinstance(at, (int, float)):
        raise NodeError('a rate needs samples with their time; set "samples": true at the tag.window')
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


def describe(value: object) -> str:
    """Return what kind of JSON value this is, for an error."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case _:
            return "an object"
