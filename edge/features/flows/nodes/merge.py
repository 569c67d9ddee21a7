"""`merge`: an object of the inputs that were passed on."""

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output


class MergeConfig(NodeConfig, frozen=True):
    """Nothing to configure."""


def _run(_config: MergeConfig, attempt: Attempt) -> Output:
    return Output(dict(attempt.inputs))


KIND = NodeKind("merge", "An object of the inputs that were passed on.", MergeConfig, Inputs.JOIN, Compute(_run))
