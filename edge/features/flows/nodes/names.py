"""What the names of an expression mean in a node: the ids of its predecessors, and `input`."""

from collections.abc import Callable, Collection, Iterable
from functools import lru_cache
from typing import Any, Final

from edge.expression.compiler import Expression, Resolve, compile_condition, compile_value
from edge.expression.syntax import ExpressionSyntaxError, Name
from edge.expression.value import UNKNOWN, Evaluate, EvaluationError, follow
from edge.features.flows.nodes.kind import Attempt, NodeError
from edge.foundation.text import Text

INPUT: Final = "input"


def resolve_names(predecessors: Collection[str]) -> Resolve:
    """Return how the names of an expression are read from an attempt.

    The longest dotted beginning of a name that is the id of a predecessor counts; the rest leads into its output.
    """

    def resolve(name: Name) -> Evaluate:
        words = _leading_words(name)
        for length in range(len(words), 0, -1):
            node = ".".join(words[:length])
            if node in predecessors:
                return follow(_output_of(node), name.path[length:])
        if name.path[0] == INPUT:
            return follow(_input, name.path[1:])
        known = ", ".join([*sorted(predecessors), INPUT])
        reason = Text.of("there is no input {name!r}; known are {known}", name=name.path[0], known=known)
        raise ExpressionSyntaxError(reason, name.start)

    return resolve


def _leading_words(name: Name) -> list[str]:
    words: list[str] = []
    for part in name.path:
        if not isinstance(part, str):
            break
        words.append(part)
    return words


def _output_of(node: str) -> Evaluate:
    return lambda attempt: attempt.inputs.get(node, UNKNOWN)


def _input(attempt: Attempt) -> Any:
    return attempt.input


@lru_cache(maxsize=1024)
def value_of(text: str, predecessors: frozenset[str]) -> Expression:
    """Compile an expression of a node; raises ExpressionSyntaxError."""
    return compile_value(text, resolve_names(predecessors))


@lru_cache(maxsize=1024)
def condition_of(text: str, predecessors: frozenset[str]) -> Expression:
    """Compile a condition of a node; raises ExpressionSyntaxError."""
    return compile_condition(text, resolve_names(predecessors))


def syntax_faults(
    compile_text: Callable[[str, frozenset[str]], Expression], text: str, predecessors: Iterable[str]
) -> Iterable[str]:
    """Report why an expression is refused."""
    try:
        compile_text(text, frozenset(predecessors))
    except ExpressionSyntaxError as error:
        yield f"{text!r}: {error}"


def evaluate(expression: Expression, attempt: Attempt) -> Any:
    """Return the value of an expression, None when it is unknown; raises NodeError when it cannot be evaluated."""
    try:
        value = expression.evaluate(attempt)
    except EvaluationError as error:
        raise NodeError(error.text) from None
    return None if value is UNKNOWN else value
