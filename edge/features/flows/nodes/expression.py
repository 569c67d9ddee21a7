"""`expression`: the value of an expression over the inputs."""

from collections.abc import Iterable

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output
from edge.features.flows.nodes.names import evaluate, syntax_faults, value_of


class ExpressionConfig(NodeConfig, frozen=True):
    """The expression; its names are the ids of the predecessors, and `input` where there is only one."""

    expr: str


def _faults(config: ExpressionConfig, predecessors: Iterable[str]) -> Iterable[str]:
    return syntax_faults(value_of, config.expr, predecessors)


def _run(config: ExpressionConfig, attempt: Attempt) -> Output:
    return Output(evaluate(value_of(config.expr, frozenset(attempt.inputs)), attempt))


KIND = NodeKind(
    "expression",
    "The value of an expression over the inputs.",
    ExpressionConfig,
    Inputs.ANY,
    Compute(_run),
    faults=_faults,
)
