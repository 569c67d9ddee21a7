"""`aggregate`: one number of a list of numbers or samples."""

import math
import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Annotated, Any, Literal

import msgspec

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output
from edge.features.flows.nodes.numbers import Number, finite, is_finite, number_of, require_list, time_of


class AggregateConfig(NodeConfig, frozen=True):
    """What to compute; `p` (0-100) belongs to `percentile`."""

    of: Literal["mean", "min", "max", "sum", "count", "median", "stddev", "percentile", "rate"]
    p: Annotated[float, msgspec.Meta(ge=0, le=100)] | None = None


def _faults(config: AggregateConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    if (config.of == "percentile") != (config.p is not None):
        yield "p belongs to percentile, and percentile needs it"


def percentile(values: Sequence[Number], p: float) -> float:
    """Return the percentile of some values, linear between neighbours."""
    ordered = sorted(values)
    position = (len(ordered) - 1) * p / 100
    below = math.floor(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def total(values: Iterable[Number]) -> Number:
    """Return the sum; that of whole numbers is exact and whole."""
    found = list(values)
    return sum(found) if all(isinstance(number, int) for number in found) else math.fsum(found)


def rate(samples: Sequence[Any]) -> Number | None:
    """Return the change per second between the first and the last sample; None without time between them."""
    if not samples:
        return None
    seconds = (time_of(samples[-1]) - time_of(samples[0])) / 1000
    return (number_of(samples[-1]) - number_of(samples[0])) / seconds if seconds else None


_FUNCTIONS: dict[str, tuple[int, Callable[[Sequence[Number]], Number]]] = {
    "mean": (1, statistics.fmean),
    "min": (1, min),
    "max": (1, max),
    "sum": (0, total),
    "count": (0, len),
    "median": (1, statistics.median),
    "stddev": (2, statistics.stdev),
}
"""By name: the fewest values that have a result, and the function."""


def _run(config: AggregateConfig, attempt: Attempt) -> Output:
    items = require_list(attempt.input)
    values = [number_of(item) for item in items]
    if not all(map(is_finite, values)):
        return Output(None)
    try:
        return Output(_result(config, items, values))
    except OverflowError:
        # A result beyond the largest number is unknown, like infinity.
        return Output(None)


def _result(config: AggregateConfig, items: Sequence[Any], values: Sequence[Number]) -> Number | None:
    match config.of:
        case "rate":
            found = rate(items)
        case "percentile":
            found = percentile(values, config.p or 0.0) if values else None
        case name:
            fewest, function = _FUNCTIONS[name]
            found = function(values) if len(values) >= fewest else None
    return None if found is None else finite(found)


KIND = NodeKind(
    "aggregate",
    "One number of a list of numbers.",
    AggregateConfig,
    Inputs.ONE,
    Compute(_run),
    faults=_faults,
)
