"""`capability`: Cm and Cmk of a list of numbers or samples."""

import statistics
from collections.abc import Iterable

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output
from edge.features.flows.nodes.numbers import Number, finite, is_finite, number_of, require_list


class CapabilityConfig(NodeConfig, frozen=True):
    """The lower and the upper specification limit."""

    lsl: float
    usl: float


def _faults(config: CapabilityConfig, _predecessors: Iterable[str]) -> Iterable[str]:
    if not config.lsl < config.usl:
        yield "lsl is below usl"


def _run(config: CapabilityConfig, attempt: Attempt) -> Output:
    values = [number_of(value) for value in require_list(attempt.input)]
    mean, stddev = _moments(values)
    cm = cmk = None
    if mean is not None and stddev:
        cm = finite((config.usl - config.lsl) / (6 * stddev))
        cmk = finite(min(config.usl - mean, mean - config.lsl) / (3 * stddev))
    return Output({"n": len(values), "mean": mean, "stddev": stddev, "cm": cm, "cmk": cmk})


def _moments(values: list[Number]) -> tuple[Number | None, Number | None]:
    """Return mean and sample standard deviation; None where there are too few values or they are too large."""
    if not values or not all(map(is_finite, values)):
        return None, None
    try:
        mean = statistics.fmean(values)
        stddev = statistics.stdev(values) if len(values) > 1 else None
    except OverflowError:
        return None, None
    return mean, stddev


KIND = NodeKind(
    "capability",
    "Machine capability Cm and Cmk from the sample standard deviation.",
    CapabilityConfig,
    Inputs.ONE,
    Compute(_run),
    faults=_faults,
)
