"""`switch`: passes its input on when a condition is true."""

from collections.abc import Iterable

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output, Withheld
from edge.features.flows.nodes.names import condition_of, evaluate, syntax_faults


class SwitchConfig(NodeConfig, frozen=True):
    """The condition; unknown counts as false."""

    when: str


def _faults(config: SwitchConfig, predecessors: Iterable[str]) -> Iterable[str]:
    return syntax_faults(condition_of, config.when, predecessors)


def _run(config: SwitchConfig, attempt: Attempt) -> Output:
    if evaluate(condition_of(config.when, frozenset(attempt.inputs)), attempt) is True:
        return Output(attempt.input)
    return Output(None, Withheld.SWITCH)


KIND = NodeKind(
    "switch", "Passes its input on when a condition is true.", SwitchConfig, Inputs.ONE, Compute(_run), faults=_faults
)
