"""The syntax of expressions: from text to a tree of nodes with their positions, every error with its position."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator
from decimal import Decimal
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from edge.foundation.text import Text


class ExpressionSyntaxError(ValueError):
    """An expression that is refused: the reason, and the position of the first wrong character, counted from 1."""

    def __init__(self, reason: Text, position: int | None = None) -> None:
        """Append the position to the reason, when there is one."""
        if position is not None:
            reason = Text.of("{reason} (at character {position})", reason=reason, position=position + 1)
        super().__init__(str(reason))
        self.text = reason


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


MAX_LENGTH: Final = 1000
MAX_DEPTH: Final = 32

_Rule: TypeAlias = Callable[[int], Node]

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<iectime>[tT]\#(?:\d+(?:\.\d+)?(?:ms|[dhms]))+(?!\w))
    | (?P<time>\d+(?:\.\d+)?(?:ms|min|s|h)(?!\w))
    | (?P<number>\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?(?!\w))
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>\|\||&&|\*\*|==|!=|<>|<=|>=|[<>!=().,\[\]+\-*/%])
    """,
    re.VERBOSE,
)
_WORD: Final = re.compile(r"[^\W\d]\w*")
_SECONDS: Final = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "m": Decimal(60),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
_COMPARISONS: Final = {"==": "==", "!=": "!=", "<>": "!=", "<": "<", "<=": "<=", ">": ">", ">=": ">="}
_CONSTANTS: Final = {"true": True, "always": True, "false": False, "never": False}
_RESERVED: Final = frozenset({"and", "or", "not"})
_ADVICE: Final = {"=": Text.of("write '==' to compare"), "**": Text.of("there is no power operator")}

FUNCTIONS: Final[dict[str, tuple[int, int]]] = {
    "min": (2, 20),
    "max": (2, 20),
    "abs": (1, 1),
    "round": (1, 2),
    "coalesce": (2, 20),
    "if": (3, 3),
}
"""The functions of the language with their least and most arguments."""
MAX_DIGITS: Final = 15
"""Most decimal places of `round`."""


class _Token(Struct, frozen=True):
    kind: str
    text: str
    start: int
    end: int


@functools.lru_cache(maxsize=512)
def parse(text: str) -> Node:
    """Parse an expression; raises ExpressionSyntaxError with the position of the fault."""
    if len(text) > MAX_LENGTH:
        raise ExpressionSyntaxError(
            Text.of(
                "an expression has at most {most} characters, this one has {length}", most=MAX_LENGTH, length=len(text)
            )
        )
    if not text.strip():
        raise ExpressionSyntaxError(Text.of("the expression is empty"))
    parser = _Parser(_tokens(text))
    node = parser.disjunction(0)
    parser.expect_end()
    return node


def _tokens(text: str) -> list[_Token]:
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            word = re.match(r"[\w.#]+|.", text[at:], re.DOTALL)
            raise ExpressionSyntaxError(Text.of("cannot read {text!r}", text=word.group() if word else text[at]), at)
        if match.lastgroup != "space":
            tokens.append(_Token(str(match.lastgroup), match.group(), at, match.end()))
        at = match.end()
    tokens.append(_Token("end", "", len(text), len(text)))
    return tokens


class _Parser:
    """Recursive descent over the tokens; parentheses, calls and signs count as depth."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

    @property
    def _end(self) -> int:
        """Return where the last token taken ends."""
        return self._tokens[self._at - 1].end

    def _take(self) -> _Token:
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _accept(self, *texts: str) -> _Token | None:
        token = self._next
        return self._take() if token.kind in {"word", "symbol"} and token.text in texts else None

    def _expect(self, text: str) -> _Token:
        token = self._accept(text)
        if token is None:
            if not self._next.text:
                raise ExpressionSyntaxError(Text.of("expected {text!r} at the end", text=text), self._next.start)
            reason = Text.of("expected {text!r} before {next!r}", text=text, next=self._next.text)
            raise ExpressionSyntaxError(reason, self._next.start)
        return token

    def expect_end(self) -> None:
        if self._next.kind == "end":
            return
        reason = _ADVICE.get(self._next.text) or Text.of("{text!r} is not expected here", text=self._next.text)
        raise ExpressionSyntaxError(reason, self._next.start)

    def _deeper(self, depth: int, token: _Token) -> int:
        if depth >= MAX_DEPTH:
            raise ExpressionSyntaxError(Text.of("nested deeper than {most}", most=MAX_DEPTH), token.start)
        return depth + 1

    def disjunction(self, depth: int) -> Node:
        return self._junction("or", ("or", "||"), self._conjunction, depth)

    def _conjunction(self, depth: int) -> Node:
        return self._junction("and", ("and", "&&"), self._negation, depth)

    def _junction(self, word: str, spellings: tuple[str, ...], operand: _Rule, depth: int) -> Node:
        start = self._next.start
        operands = [operand(depth)]
        while self._accept(*spellings):
            operands.append(operand(depth))
        return operands[0] if len(operands) == 1 else Junction(word, tuple(operands), start, self._end)

    def _negation(self, depth: int) -> Node:
        token = self._accept("not", "!")
        if token is None:
            return self._comparison(depth)
        operand = self._negation(self._deeper(depth, token))
        return Not(operand, token.start, self._end)

    def _comparison(self, depth: int) -> Node:
        start = self._next.start
        left = self._sum(depth)
        # Only here a word of its own: a name may be `in`, too.
        if self._accept("in"):
            return MemberTest(left, self._sum(depth), start, self._end)
        token = self._accept(*_COMPARISONS)
        if token is None:
            return left
        right = self._sum(depth)
        return Compare(_COMPARISONS[token.text], left, right, start, self._end)

    def _sum(self, depth: int) -> Node:
        return self._arithmetic(("+", "-"), self._product, depth)

    def _product(self, depth: int) -> Node:
        return self._arithmetic(("*", "/", "%"), self._signed, depth)

    def _arithmetic(self, operators: tuple[str, ...], operand: _Rule, depth: int) -> Node:
        start = self._next.start
        first = operand(depth)
        rest = []
        while token := self._accept(*operators):
            rest.append((token.text, operand(depth)))
        return Arithmetic(first, tuple(rest), start, self._end) if rest else first

    def _signed(self, depth: int) -> Node:
        token = self._accept("-")
        if token is None:
            return self._atom(depth)
        operand = self._signed(self._deeper(depth, token))
        match operand:
            case Literal(value=int() | float() as value) if not isinstance(value, bool):
                return Literal(-value, token.start, operand.end)
            case _:
                return Negative(operand, token.start, self._end)

    def _atom(self, depth: int) -> Node:
        token = self._next
        if self._accept("("):
            node = self.disjunction(self._deeper(depth, token))
            self._expect(")")
            return node
        if token.kind == "word" and token.text not in _RESERVED:
            self._take()
            return self._call(token, depth) if self._next.text == "(" else self._word(token)
        value = _literal(token)
        if value is None:
            raise ExpressionSyntaxError(_ADVICE.get(token.text) or _value_expected(token), token.start)
        self._take()
        return Literal(value, token.start, token.end)

    def _call(self, token: _Token, depth: int) -> Node:
        name = token.text
        if name not in FUNCTIONS:
            raise ExpressionSyntaxError(
                Text.of("unknown function {name!r}; there are {known}", name=name, known=", ".join(FUNCTIONS)),
                token.start,
            )
        inner = self._deeper(depth, self._take())
        arguments = [] if self._next.text == ")" else [self.disjunction(inner)]
        while arguments and self._accept(","):
            arguments.append(self.disjunction(inner))
        self._expect(")")
        least, most = FUNCTIONS[name]
        if not least <= len(arguments) <= most:
            raise ExpressionSyntaxError(_wrong_number(name, len(arguments)), token.start)
        if name == "round" and len(arguments) > 1:
            _require_digits(arguments[1])
        return Call(name, tuple(arguments), token.start, self._end)

    def _word(self, token: _Token) -> Node:
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], token.start, token.end)
        path: list[str | int] = [token.text]
        end = token.end
        while opening := self._accept(".", "["):
            part = self._take()
            if opening.text == ".":
                if part.kind != "word":
                    raise ExpressionSyntaxError(Text.of("expected a name after '.'"), part.start)
                path.append(part.text)
                end = part.end
            else:
                path.append(_index(part))
                end = self._expect("]").end
        return Name(tuple(path), token.start, end)


def _value_expected(token: _Token) -> Text:
    if token.text:
        return Text.of("expected a value before {next!r}", next=token.text)
    return Text.of("expected a value at the end")


def _wrong_number(name: str, count: int) -> Text:
    least, most = FUNCTIONS[name]
    if least == most:
        return Text.of("{name}() takes {number} arguments, not {count}", name=name, number=least, count=count)
    return Text.of(
        "{name}() takes {least} to {most} arguments, not {count}", name=name, least=least, most=most, count=count
    )


def text_of_path(path: tuple[str | int, ...]) -> str:
    """Return the text of a name; parts that are not words are written in brackets: `steps["Step 2"].T`."""
    first, *parts = path
    return str(first) + "".join(map(_part_text, parts))


def _part_text(part: str | int) -> str:
    if isinstance(part, str) and _WORD.fullmatch(part):
        return f".{part}"
    if isinstance(part, int):
        return f"[{part}]"
    return '["{}"]'.format(part.replace("\\", "\\\\").replace('"', '\\"'))


def _require_digits(node: Node) -> None:
    match node:
        case Literal(value=int() as digits) if not isinstance(digits, bool) and 0 <= digits <= MAX_DIGITS:
            return
        case _:
            raise ExpressionSyntaxError(
                Text.of("round() takes 0 to {most} decimal places, as a literal", most=MAX_DIGITS), node.start
            )


def _index(token: _Token) -> str | int:
    if token.kind == "string":
        return _unquote(token.text)
    if token.kind == "number" and token.text.isdigit():
        return int(token.text)
    raise ExpressionSyntaxError(Text.of("expected a whole number or a string in brackets"), token.start)


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


def _literal(token: _Token) -> float | str | None:
    match token.kind:
        case "number":
            return int(token.text) if token.text.isdigit() else _finite(float(token.text), token)
        case "time" | "iectime":
            parts = re.findall(r"(\d+(?:\.\d+)?)(min|ms|[dhms])", token.text)
            return _finite(float(sum(Decimal(number) * _SECONDS[unit] for number, unit in parts)), token)
        case "string":
            return _unquote(token.text)
        case _:
            return None


def _finite(value: float, token: _Token) -> float:
    if value in {float("inf"), float("-inf")}:
        raise ExpressionSyntaxError(Text.of("the number is too large"), token.start)
    return value
