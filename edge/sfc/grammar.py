"""The grammar of conditions: from text to a small tree, every error with its position."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Final, TypeAlias

LONGEST: Final = 1000
DEEPEST: Final = 32


class ConditionSyntaxError(ValueError):
    """A condition that is refused: why, and at which character (from 1)."""

    def __init__(self, reason: str, position: int | None = None) -> None:
        """Take the reason and the index into the text, if one is to blame."""
        super().__init__(reason if position is None else f"{reason} (at character {position + 1})")


@dataclass(frozen=True, slots=True)
class Literal:
    """A number (of seconds, if it was a time), a string, true or false."""

    value: bool | float | str
    start: int
    end: int

    def names(self) -> Iterator[Name]:
        """Give no names."""
        yield from ()


@dataclass(frozen=True, slots=True)
class Name:
    """A name with its parts: `actions.verify.result[0]`."""

    path: tuple[str | int, ...]
    start: int
    end: int

    def names(self) -> Iterator[Name]:
        """Give itself."""
        yield self


@dataclass(frozen=True, slots=True)
class Not:
    """A negation."""

    operand: Node
    start: int
    end: int

    def names(self) -> Iterator[Name]:
        """Give the names of the operand."""
        yield from self.operand.names()


@dataclass(frozen=True, slots=True)
class Junction:
    """Operands joined by one word, `and` or `or`."""

    word: str
    operands: tuple[Node, ...]
    start: int
    end: int

    def names(self) -> Iterator[Name]:
        """Give the names of all operands."""
        for operand in self.operands:
            yield from operand.names()


@dataclass(frozen=True, slots=True)
class Compare:
    """A comparison of two atoms."""

    operator: str
    left: Node
    right: Node
    start: int
    end: int

    def names(self) -> Iterator[Name]:
        """Give the names of both sides."""
        yield from self.left.names()
        yield from self.right.names()


Node: TypeAlias = Literal | Name | Not | Junction | Compare
_Operand: TypeAlias = Callable[[int], Node]

_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+)
    | (?P<iectime>[tT]\#(?:\d+(?:\.\d+)?(?:ms|[dhms]))+(?!\w))
    | (?P<time>\d+(?:\.\d+)?(?:ms|min|s|h)(?!\w))
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,3})?(?!\w))
    | (?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>\|\||&&|==|!=|<>|<=|>=|[<>!=().\[\]])
    """,
    re.VERBOSE,
)
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


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    start: int
    end: int


def parse(text: str) -> Node:
    """Parse a condition; raises ConditionSyntaxError with the position of what is wrong."""
    if len(text) > LONGEST:
        raise ConditionSyntaxError(f"a condition has at most {LONGEST} characters, this one has {len(text)}")
    if not text.strip():
        raise ConditionSyntaxError("the condition is empty")
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
            raise ConditionSyntaxError(f"cannot read {word.group() if word else text[at]!r}", at)
        if match.lastgroup != "space":
            tokens.append(_Token(str(match.lastgroup), match.group(), at, match.end()))
        at = match.end()
    tokens.append(_Token("end", "", len(text), len(text)))
    return tokens


class _Parser:
    """Recursive descent over the tokens; parentheses and negations count as depth."""

    def __init__(self, tokens: list[_Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._at]

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
            raise ConditionSyntaxError(f"expected {text!r} {self._instead()}", self._next.start)
        return token

    def _instead(self) -> str:
        return f"before {self._next.text!r}" if self._next.text else "at the end"

    def expect_end(self) -> None:
        if self._next.kind == "end":
            return
        reason = "write '==' to compare" if self._next.text == "=" else f"{self._next.text!r} is not expected here"
        raise ConditionSyntaxError(reason, self._next.start)

    def disjunction(self, depth: int) -> Node:
        return self._junction("or", ("or", "||"), self._conjunction, depth)

    def _conjunction(self, depth: int) -> Node:
        return self._junction("and", ("and", "&&"), self._negation, depth)

    def _junction(self, word: str, spellings: tuple[str, ...], operand: _Operand, depth: int) -> Node:
        operands = [operand(depth)]
        while self._accept(*spellings):
            operands.append(operand(depth))
        if len(operands) == 1:
            return operands[0]
        return Junction(word, tuple(operands), operands[0].start, operands[-1].end)

    def _negation(self, depth: int) -> Node:
        token = self._accept("not", "!")
        if token is None:
            return self._comparison(depth)
        operand = self._negation(self._deeper(depth, token))
        return Not(operand, token.start, operand.end)

    def _deeper(self, depth: int, token: _Token) -> int:
        if depth >= DEEPEST:
            raise ConditionSyntaxError(f"nested deeper than {DEEPEST}", token.start)
        return depth + 1

    def _comparison(self, depth: int) -> Node:
        left = self._atom(depth)
        token = self._accept(*_COMPARISONS)
        if token is None:
            return left
        right = self._atom(depth)
        return Compare(_COMPARISONS[token.text], left, right, left.start, right.end)

    def _atom(self, depth: int) -> Node:
        token = self._next
        if token.text == "(" and token.kind == "symbol":
            self._take()
            node = self.disjunction(self._deeper(depth, token))
            self._expect(")")
            return node
        if token.kind == "word" and token.text not in _RESERVED:
            return self._word(self._take())
        value = _literal(token)
        if value is None:
            raise ConditionSyntaxError(f"expected a value {self._instead()}", token.start)
        self._take()
        return Literal(value, token.start, token.end)

    def _word(self, token: _Token) -> Node:
        if token.text in _CONSTANTS:
            return Literal(_CONSTANTS[token.text], token.start, token.end)
        path: list[str | int] = [token.text]
        end = token.end
        while opening := self._accept(".", "["):
            part = self._take()
            if opening.text == ".":
                if part.kind != "word":
                    raise ConditionSyntaxError("expected a name after '.'", part.start)
                path.append(part.text)
                end = part.end
            else:
                path.append(_index(part))
                end = self._expect("]").end
        return Name(tuple(path), token.start, end)


def _index(token: _Token) -> str | int:
    if token.kind == "string":
        return _unquote(token.text)
    if token.kind == "number" and token.text.isdigit():
        return int(token.text)
    raise ConditionSyntaxError("expected a whole number or a string in brackets", token.start)


def _unquote(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1], flags=re.DOTALL)


def _literal(token: _Token) -> float | str | None:
    match token.kind:
        case "number":
            return int(token.text) if token.text.lstrip("-").isdigit() else _finite(float(token.text), token)
        case "time" | "iectime":
            parts = re.findall(r"(\d+(?:\.\d+)?)(min|ms|[dhms])", token.text)
            return _finite(float(sum(Decimal(number) * _SECONDS[unit] for number, unit in parts)), token)
        case "string":
            return _unquote(token.text)
        case _:
            return None


def _finite(value: float, token: _Token) -> float:
    if value in {float("inf"), float("-inf")}:
        raise ConditionSyntaxError("the number is too large", token.start)
    return value
