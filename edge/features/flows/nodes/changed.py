"""`changed`: passes its input on when it differs from the value that it received last."""

from typing import Any

from edge.features.flows.nodes.kind import Attempt, Compute, Inputs, NodeConfig, NodeKind, Output, Withheld


class ChangedConfig(NodeConfig, frozen=True):
    """Nothing to configure."""


def is_same(left: Any, right: Any) -> bool:
    """Return whether two JSON values are equal; true is not the number 1."""
    match left, right:
        case (bool(), _) | (_, bool()):
            return left is right
        case list() | tuple(), list() | tuple():
            return len(left) == len(right) and all(map(is_same, left, right))
        case dict(), dict():
            return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
        case _:
            return bool(left == right)


def _run(_config: ChangedConfig, attempt: Attempt) -> Output:
    # The memory is a list of one value, so that null is a value too.
    memory = [attempt.input]
    if attempt.memory is not None and is_same(attempt.memory, memory):
        return Output(None, Withheld.UNCHANGED, memory=memory)
    return Output(attempt.input, memory=memory)


KIND = NodeKind("changed", "Passes its input on when it differs.", ChangedConfig, Inputs.ONE, Compute(_run))
