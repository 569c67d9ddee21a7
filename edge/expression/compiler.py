"""Compiles an expression to closures that evaluate it in three-valued logic.

An expression never runs code, never loops and never recurses deeper than `MAX_DEPTH` allows, whatever its text. What
its names mean is up to the caller: `resolve` returns a closure for each, or refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeAlias, assert_never

from msgspec import Struct

from edge.expression.syntax import (
    Arithmetic,
    Call,
    Compare,
    ExpressionSyntaxError,
    Junction,
    Kind,
    Literal,
    MemberTest,
    Name,
    Negative,
    Node,
    Not,
    kind_of,
    names_of,
    needed_kinds,
    nodes_of,
    parse,
)
from edge.expression.value import (
    KIND_TEXTS,
    UNKNOWN,
    Evaluate,
    EvaluationError,
    MemberSet,
    Number,
    Truth,
    boolean,
    calculate,
    compare,
    contains,
    is_unknown,
    negate,
    number,
    round_half_away,
    show,
)
from edge.foundation.text import Text, join_texts

Resolve: TypeAlias = Callable[[Name], Evaluate]
"""Returns the closure of a name; raises ExpressionSyntaxError for a name that it refuses."""


class Unmet(Struct, frozen=True):
    """A part of a condition that is not true, and the reason: its names with their present values."""

    text: str | Text
    because: str | Text


class Expression(Struct, frozen=True):
    """A compiled expression. `constant` is its value while no name has one."""

    text: str
    node: Node
    evaluate: Evaluate
    constant: Any
    closure: Callable[[Node], Evaluate]
    """Returns the closure of one of its nodes."""

    def part(self, node: Node) -> str:
        """Return the text of a node."""
        return self.text[node.start : node.end]

    def explain(self, context: Any) -> tuple[Unmet, ...]:
        """Return the smallest parts that keep a condition from being true."""
        return tuple(self._unmet(self.node, context))

    def _unmet(self, node: Node, context: Any) -> list[Unmet]:
        text = self.part(node)
        try:
            value = boolean(self.closure(node), text)(context)
        except EvaluationError as error:
            return [Unmet(text, error.text)]
        if value is True:
            return []
        if isinstance(node, Junction):
            return [unmet for part in node.operands for unmet in self._unmet(part, context)]
        return [Unmet(text, self._present(node, context))]

    def _present(self, node: Node, context: Any) -> Text:
        """Return the names of a part with their present values: `actions.a.result.torque is 61`."""
        values = {self.part(name): self.closure(name)(context) for name in names_of(node)}
        if not values:
            return Text.of("never true")
        return join_texts(", ", (_value_text(name, value) for name, value in values.items()))


def _value_text(name: str, value: object) -> Text:
    if is_unknown(value):
        return Text.of("{name}: no value yet", name=name)
    return Text.of("{name} is {value}", name=name, value=value.text if isinstance(value, MemberSet) else show(value))


def compile_value(text: str, resolve: Resolve) -> Expression:
    """Compile an expression of any kind; raises ExpressionSyntaxError with position and reason."""
    node = parse(text)
    _check_kinds(node, text, None)
    closure = _Compiler(text, resolve).closure
    return Expression(text, node, _known(closure(node)), _constant(node, text, lambda evaluate: evaluate), closure)


def compile_condition(text: str, resolve: Resolve) -> Expression:
    """Compile an expression that is true, false or unknown; raises ExpressionSyntaxError with position and reason."""
    node = parse(text)
    _check_kinds(node, text, Kind.TRUTH)
    closure = _Compiler(text, resolve).closure
    constant = _constant(node, text, lambda evaluate: boolean(evaluate, text))
    return Expression(text, node, boolean(closure(node), text), constant, closure)


def _known(value: Evaluate) -> Evaluate:
    def evaluate(context: Any) -> Any:
        result = value(context)
        return UNKNOWN if is_unknown(result) else result

    return evaluate


def _constant(node: Node, text: str, finish: Callable[[Evaluate], Evaluate]) -> Any:
    """Return the value without any name known; a fault that is there in any case is a fault of the text."""
    try:
        return finish(_Compiler(text, lambda _: lambda _: UNKNOWN).closure(node))(None)
    except EvaluationError as error:
        raise ExpressionSyntaxError(error.text) from None


def _check_kinds(node: Node, text: str, needed: Kind | None) -> None:
    """Refuse operands and results of calculations whose kind can never fit.

    What compares and joins plain values is left to its evaluation: `false and 5` is false.
    """
    computed = {
        id(part)
        for outer in nodes_of(node)
        if isinstance(outer, Arithmetic | Negative | Call)
        for part in (outer, *_operands(outer))
    }
    for test in nodes_of(node):
        if isinstance(test, MemberTest) and (kind := kind_of(test.container)) is not None:
            container = text[test.container.start : test.container.end]
            raise ExpressionSyntaxError(
                Text.of("{term!r} is {kind}, where a list is needed", term=container, kind=KIND_TEXTS[kind]),
                test.container.start,
            )
    for part, wanted in needed_kinds(node, needed):
        kind = kind_of(part)
        if id(part) in computed and kind is not None and kind is not wanted:
            raise ExpressionSyntaxError(
                Text.of(
                    "{term!r} is {kind}, where {wanted} is needed",
                    term=text[part.start : part.end],
                    kind=KIND_TEXTS[kind],
                    wanted=KIND_TEXTS[wanted],
                ),
                part.start,
            )


def _operands(node: Arithmetic | Negative | Call) -> tuple[Node, ...]:
    match node:
        case Arithmetic(first=first, rest=rest):
            return (first, *(operand for _, operand in rest))
        case Negative(operand=operand):
            return (operand,)
        case Call(arguments=arguments):
            return arguments


class _Compiler:
    """Turns nodes into closures, each node once."""

    def __init__(self, text: str, resolve: Resolve) -> None:
        self._text = text
        self._resolve = resolve
        self._compiled: dict[Node, Evaluate] = {}

    def closure(self, node: Node) -> Evaluate:
        known = self._compiled.get(node)
        if known is None:
            known = self._compiled[node] = self._compile(node)
        return known

    def _compile(self, node: Node) -> Evaluate:
        match node:
            case Literal(value=value):
                return lambda _: value
            case Name():
                return self._resolve(node)
            case Not(operand=operand):
                return negate(self._truth(operand))
            case Junction():
                return self._junction(node)
            case Compare():
                return self._comparison(node)
            case MemberTest():
                return self._membership(node)
            case Negative(operand=operand):
                return _negative(self._number(operand))
            case Arithmetic():
                return self._arithmetic(node)
            case Call():
                return self._call(node)
            case _:
                assert_never(node)

    def _part(self, node: Node) -> str:
        return self._text[node.start : node.end]

    def _truth(self, node: Node) -> Evaluate:
        return boolean(self.closure(node), self._part(node))

    def _number(self, node: Node) -> Evaluate:
        value, text = self.closure(node), self._part(node)
        return lambda context: number(value(context), text)

    def _junction(self, node: Junction) -> Evaluate:
        parts = tuple(self._truth(part) for part in node.operands)
        decisive = node.word == "or"

        def evaluate(context: Any) -> Truth:
            known = True
            for part in parts:
                value: Truth = part(context)
                if value is decisive:
                    return decisive
                if value is UNKNOWN:
                    known = False
            return (not decisive) if known else UNKNOWN

        return evaluate

    def _comparison(self, node: Compare) -> Evaluate:
        left, right = self.closure(node.left), self.closure(node.right)
        text, word = self._part(node), node.operator

        def evaluate(context: Any) -> Truth:
            return compare(word, left(context), right(context), text)

        return evaluate

    def _membership(self, node: MemberTest) -> Evaluate:
        element, container, text = self.closure(node.element), self.closure(node.container), self._part(node)

        def evaluate(context: Any) -> Truth:
            return contains(element(context), container(context), text)

        return evaluate

    def _arithmetic(self, node: Arithmetic) -> Evaluate:
        first = self._number(node.first)
        rest = tuple((word, self._number(operand)) for word, operand in node.rest)

        def evaluate(context: Any) -> Number:
            result: Number = first(context)
            for word, operand in rest:
                value: Number = operand(context)
                result = UNKNOWN if result is UNKNOWN or value is UNKNOWN else calculate(word, result, value)
            return result

        return evaluate

    def _call(self, node: Call) -> Evaluate:
        match node.function:
            case "if":
                condition, then, otherwise = node.arguments
                return _choice(self._truth(condition), self.closure(then), self.closure(otherwise))
            case "coalesce":
                return _first_known(tuple(map(self.closure, node.arguments)))
            case name:
                return _over_numbers(_NUMERIC[name], tuple(map(self._number, node.arguments)))


def _negative(operand: Evaluate) -> Evaluate:
    def evaluate(context: Any) -> Number:
        value: Number = operand(context)
        return UNKNOWN if value is UNKNOWN else -value

    return evaluate


def _choice(condition: Evaluate, then: Evaluate, otherwise: Evaluate) -> Evaluate:
    def evaluate(context: Any) -> Any:
        value = condition(context)
        return UNKNOWN if value is UNKNOWN else then(context) if value else otherwise(context)

    return evaluate


def _first_known(values: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(context: Any) -> Any:
        return next((result for value in values if not is_unknown(result := value(context))), UNKNOWN)

    return evaluate


def _over_numbers(function: Callable[..., Number], arguments: tuple[Evaluate, ...]) -> Evaluate:
    def evaluate(context: Any) -> Number:
        values = [argument(context) for argument in arguments]
        return UNKNOWN if UNKNOWN in values else function(*values)

    return evaluate


_NUMERIC: Final[dict[str, Callable[..., Number]]] = {
    "min": min,
    "max": max,
    "abs": abs,
    "round": lambda value, digits=0: round_half_away(value, digits),
}
