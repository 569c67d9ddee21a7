"""The syntax tree of an expression: nodes with their positions, their names and the kinds of value they need."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct


class ExpressionSyntaxError(ValueError):
    """An expression that is refused: the reason, and the position of the first wrong character, counted from 1."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        """Append the position to the reason, when there is one."""
        super().__init__(reason if position is None else f"{reason} (at character {position + 1})")


class Kind(StrEnum):
    """What a value is, as error messages write it."""

    NUMBER = "a number"
    STRING = "a string"
    TRUTH = "true or false"


class Literal(Struct, frozen=True):
    """A number (of seconds, if it was a time), a string, true or false."""

    value: bool | float | str
    start: int
    end: int


class Name(Struct, frozen=True):
    """A name with its parts: `actions.verify.result[0]`."""

    path: tuple[str | int, ...]
    start: int
    end: int


class Not(Struct, frozen=True):
    """A negation of a truth value."""

    operand: Node
    start: int
    end: int


class Negative(Struct, frozen=True):
    """A number with its sign changed."""

    operand: Node
    start: int
    end: int


class Junction(Struct, frozen=True):
    """Operands joined by one word, `and` or `or`."""

    word: str
    operands: tuple[Node, ...]
    start: int
    end: int


class Compare(Struct, frozen=True):
    """A comparison of two values."""

    operator: str
    left: Node
    right: Node
    start: int
    end: int


class MemberTest(Struct, frozen=True):
    """A test whether a value is in a set or list: `carrier in mirrors.carriers`."""

    element: Node
    container: Node
    start: int
    end: int


class Arithmetic(Struct, frozen=True):
    """Operands joined from left to right by operators of one precedence: `+ -`, or `* / %`.

    One flat node, so that a long sum is not a deep tree.
    """

    first: Node
    rest: tuple[tuple[str, Node], ...]
    start: int
    end: int


class Call(Struct, frozen=True):
    """A call of one of the functions of the language."""

    function: str
    arguments: tuple[Node, ...]
    start: int
    end: int


Node: TypeAlias = Literal | Name | Not | Negative | Junction | Compare | MemberTest | Arithmetic | Call

CONDITIONAL: Final = "if"


def children(node: Node) -> tuple[Node, ...]:
    """Return the direct parts of a node, from left to right."""
    match node:
        case Literal() | Name():
            return ()
        case Not(operand=operand) | Negative(operand=operand):
            return (operand,)
        case Junction(operands=operands) | Call(arguments=operands):
            return operands
        case Compare(left=left, right=right) | MemberTest(element=left, container=right):
            return (left, right)
        case Arithmetic(first=first, rest=rest):
            return (first, *(operand for _, operand in rest))


def nodes_of(node: Node) -> Iterator[Node]:
    """Yield a node and all its parts, from left to right."""
    yield node
    for child in children(node):
        yield from nodes_of(child)


def names_of(node: Node) -> Iterator[Name]:
    """Yield the names in a node, from left to right."""
    return (part for part in nodes_of(node) if isinstance(part, Name))


def kind_of(node: Node) -> Kind | None:
    """Return the kind of value a node always has; None when it depends on the values of names."""
    match node:
        case Literal(value=bool()):
            return Kind.TRUTH
        case Literal(value=str()):
            return Kind.STRING
        case Literal():
            return Kind.NUMBER
        case Name():
            return None
        case Not() | Junction() | Compare() | MemberTest():
            return Kind.TRUTH
        case Negative() | Arithmetic():
            return Kind.NUMBER
        case Call(function="if" | "coalesce"):
            kinds = {kind_of(argument) for argument in _results(node)} - {None}
            return kinds.pop() if len(kinds) == 1 else None
        case Call():
            return Kind.NUMBER


def needed_kinds(node: Node, needed: Kind | None = None) -> Iterator[tuple[Node, Kind]]:
    """Yield each part of which the expression needs a certain kind of value, with that kind; `needed` is the node's."""
    if needed is not None:
        yield node, needed
    for child, kind in zip(children(node), _needed_of_children(node, needed), strict=True):
        yield from needed_kinds(child, kind)


def _needed_of_children(node: Node, needed: Kind | None) -> tuple[Kind | None, ...]:
    match node:
        case Not() | Junction():
            return (Kind.TRUTH,) * len(children(node))
        case Compare(left=left, right=right):
            return (kind_of(right), kind_of(left))
        case MemberTest():
            return (None, None)
        case Call(function="if"):
            return (Kind.TRUTH, needed, needed)
        case Call(function="coalesce"):
            return (needed,) * len(node.arguments)
        case Literal() | Name() | Negative() | Arithmetic() | Call():
            return (Kind.NUMBER,) * len(children(node))


def _results(call: Call) -> tuple[Node, ...]:
    """Return the arguments of which one becomes the value of `if` or `coalesce`."""
    return call.arguments[1:] if call.function == CONDITIONAL else call.arguments
