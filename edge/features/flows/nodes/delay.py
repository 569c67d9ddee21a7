"""`delay`: passes its input on after some time."""

from typing import Annotated

import msgspec

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output

Seconds = Annotated[float, msgspec.Meta(ge=0, le=31_622_400)]
"""A duration of at most a leap year."""


class DelayConfig(NodeConfig, frozen=True):
    """The delay in seconds."""

    seconds: Seconds


def _run(config: DelayConfig, attempt: Attempt) -> Output:
    return Output(attempt.input, delay_ms=round(config.seconds * 1000))


KIND = NodeKind("delay", "Passes its input on after some time.", DelayConfig, Inputs.ONE, Compute(_run))
