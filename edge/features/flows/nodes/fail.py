"""`fail`: fails the first attempts of each node task, for trials of retries and dependents."""

from typing import Annotated

import msgspec

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeError, NodeKind, Output


class FailConfig(NodeConfig, frozen=True):
    """The reason of the failure, and how many attempts fail; without a number all do."""

    message: str = "failed"
    times: Annotated[int, msgspec.Meta(ge=0)] | None = None


def _run(config: FailConfig, attempt: Attempt) -> Output:
    if config.times is None or attempt.number <= config.times:
        raise NodeError(config.message)
    return Output(attempt.input)


KIND = NodeKind("fail", "Fails its first attempts, then passes its input on.", FailConfig, Inputs.ANY, Compute(_run))
