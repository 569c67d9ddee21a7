"""The rule kind `expression`: a condition over the last good values of tags."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from edge.expression.compiler import Expression, compile_condition
from edge.expression.syntax import ExpressionSyntaxError, Kind, MemberTest, Name, names_of, needed_kinds, nodes_of
from edge.expression.value import UNKNOWN, Evaluate, EvaluationError, kind_of_value


class TagCondition(Struct, frozen=True):
    """A compiled condition; `tags` are its names with the kind of value that each must have, if only one will do."""

    expression: Expression
    tags: Mapping[str, Kind | None]

    def accepts(self, tag: str, value: Any) -> bool:
        """Return whether a value of a tag suits the condition."""
        kind = kind_of_value(value)
        needed = self.tags[tag]
        return kind is not None and needed in {None, kind}


class ConditionState(Struct, frozen=True, tag="expression"):
    """The last good value of each tag, and whether the condition was true at the last time that it was known."""

    values: dict[str, Any] = {}
    holds: bool = False


def compile_tag_condition(text: str) -> TagCondition:
    """Compile a condition over tags; raises ExpressionSyntaxError."""
    expression = compile_condition(text, _resolve)
    for node in nodes_of(expression.node):
        if isinstance(node, MemberTest):
            reason = "a tag holds no list; a rule `occurs` follows the members of a mirror"
            raise ExpressionSyntaxError(f"{expression.part(node)!r}: {reason}", node.start)
    tags: dict[str, Kind | None] = {tag_of(name): None for name in names_of(expression.node)}
    for node, kind in needed_kinds(expression.node, Kind.TRUTH):
        if isinstance(node, Name):
            tags[tag_of(node)] = kind
    return TagCondition(expression, tags)


def observe(condition: TagCondition, state: ConditionState, tag: str, value: Any) -> ConditionState:
    """Return the state after a sample; an unknown result keeps the state."""
    values = state.values | {tag: value}
    try:
        result = condition.expression.evaluate(values)
    except EvaluationError:
        # Two tags that are compared with each other have values of different kinds: that is not known.
        result = UNKNOWN
    return ConditionState(values, state.holds if result is UNKNOWN else result)


def tag_of(name: Name) -> str:
    """Return the tag of a name: its parts joined by dots, an index in brackets."""
    first, *rest = name.path
    return str(first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)


def _resolve(name: Name) -> Evaluate:
    tag = tag_of(name)
    return lambda values: values.get(tag, UNKNOWN)
