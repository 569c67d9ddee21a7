"""`constant`: a fixed value."""

from typing import Any

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output


class ConstantConfig(NodeConfig, frozen=True):
    """The value, any JSON."""

    value: Any


def _run(config: ConstantConfig, _attempt: Attempt) -> Output:
    return Output(config.value)


KIND = NodeKind("constant", "A fixed value.", ConstantConfig, Inputs.NONE, Compute(_run))
