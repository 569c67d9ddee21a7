"""Translates the conditions of Structured Text (IEC 61131-3, 7.3.2) into the expressions of recipes.

Precedence, the tightest first: parentheses, `-` and NOT, `* / MOD`, `+ -`, `< > <= >=`, `= <>`, `AND &`, XOR, OR. Equal
ones group from the left. So `NOT a = b` is `(NOT a) = b`, which our language writes `(not a) == b`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

from msgspec import Struct

from edge.expression.syntax import MAX_DEPTH, MAX_LENGTH
from edge.features.recipes.plcopen.finding import cut
from edge.features.recipes.plcopen.st_tokens import StError, StKind, StLiteral, StToken, literal_of, tokens_of
from edge.foundation.text import Text


class PlcVariable(Struct, frozen=True):
    """A variable of a POU: its spelling, its kind, and its initial value as text where it has one.

    `expression` is that of a recipe, for a variable that an export made in its place.
    """

    name: str
    kind: StKind = StKind.ANY
    initial: str = ""
    is_constant: bool = False
    expression: str = ""


class Scope(Struct, frozen=True):
    """What names in a condition mean: steps and variables by their names in upper case.

    With `has_defaults` a variable without a value has its declared initial value, else that of its kind. `spelling`
    collects how names without a declaration are written first.
    """

    steps: Mapping[str, str] = {}
    variables: Mapping[str, PlcVariable] = {}
    has_defaults: bool = False
    spelling: dict[str, str] = {}


class Translation(Struct, frozen=True):
    """A condition as an expression, the job variables that it names, and what differs from a PLC."""

    text: str
    names: tuple[str, ...] = ()
    warnings: tuple[Text, ...] = ()


class _Part(Struct, frozen=True):
    """A part of an expression: its text, how tightly it binds, its kind; `variable` where it is a variable alone."""

    text: str
    rank: int
    kind: StKind
    variable: str = ""
    initial: str = ""


_OR, _AND, _NOT, _COMPARE, _SUM, _PRODUCT, _SIGNED, _ATOM = range(8)
_WORDS: Final = frozenset(
    {"steps", "actions", "job", "mirrors", "always", "never", "true", "false", "and", "or", "not"}
)
"""What has another meaning at the begin of a name of our language."""
_OPERATORS: Final = frozenset({"AND", "OR", "XOR", "NOT", "MOD"})
_ZERO: Final = {StKind.TRUTH: "false", StKind.INTEGER: "0", StKind.REAL: "0", StKind.TIME: "0s", StKind.STRING: '""'}
_NUMBERS: Final = frozenset({StKind.INTEGER, StKind.REAL})
_RELATIONS: Final = {"<": "<", ">": ">", "<=": "<=", ">=": ">="}
_EQUALITIES: Final = {"=": "==", "<>": "!="}
_Rule: TypeAlias = Callable[[int], _Part]


def translate(text: str, scope: Scope) -> Translation:
    """Translate an expression of Structured Text. Raises StError with the reason where it has no equal here."""
    return _translated(tokens_of(text), scope)


def translate_named(text: str, scope: Scope, name: str) -> Translation:
    """Translate the body of a named transition: `expression`, `:= expression` or `Name := expression`."""
    tokens = tokens_of(text)
    if len(tokens) > 1 and tokens[1].text == ":=" and tokens[0].text.upper() == name.upper():
        tokens = tokens[1:]
    if tokens and tokens[0].text == ":=":
        tokens = tokens[1:]
    return _translated(tokens, scope)


def _translated(tokens: list[StToken], scope: Scope) -> Translation:
    if tokens and tokens[-1].text == ";":
        tokens = tokens[:-1]
    if not tokens:
        raise StError(Text.of("the condition is empty"))
    parser = _StParser(tokens, scope)
    part = parser.need(parser.disjunction(0), StKind.TRUTH)
    parser.expect_end()
    return Translation(part.text, tuple(parser.names), tuple(parser.warnings.values()))


class _StParser:
    """Recursive descent over the tokens; each rule returns its part of the expression."""

    def __init__(self, tokens: Sequence[StToken], scope: Scope) -> None:
        self._tokens = tokens
        self._at = 0
        self._scope = scope
        self.names: dict[str, None] = {}
        self.warnings: dict[str, Text] = {}

    def _accept(self, *words: str) -> str:
        """Take the next token where it is one of these operators, and return it in upper case."""
        token = self._next
        if token is None or token.sort not in {"word", "symbol"} or token.text.upper() not in words:
            return ""
        self._at += 1
        return token.text.upper()

    @property
    def _next(self) -> StToken | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def expect_end(self) -> None:
        """Raise StError where a token is left."""
        token = self._next
        if token is None:
            return
        if token.text in {":=", ";"}:
            raise StError(
                Text.of(
                    "statements are not carried over: {text!r} at character {position}",
                    text=token.text,
                    position=token.at,
                )
            )
        raise _unexpected(token)

    def disjunction(self, depth: int) -> _Part:
        return self._junction(("OR",), "or", _OR, self._exclusion, depth)

    def _exclusion(self, depth: int) -> _Part:
        part = self._conjunction(depth)
        while self._accept("XOR"):
            left, right = self.need(part, StKind.TRUTH), self.need(self._conjunction(depth), StKind.TRUTH)
            part = _joined(_COMPARE, StKind.TRUTH, left, "!=", right, _SUM, _SUM)
        return part

    def _conjunction(self, depth: int) -> _Part:
        return self._junction(("AND", "&"), "and", _AND, self._equality, depth)

    def _junction(self, words: tuple[str, ...], word: str, rank: int, operand: _Rule, depth: int) -> _Part:
        part = operand(depth)
        while self._accept(*words):
            left, right = self.need(part, StKind.TRUTH), self.need(operand(depth), StKind.TRUTH)
            part = _joined(rank, StKind.TRUTH, left, word, right, rank, rank + 1)
        return part

    def _equality(self, depth: int) -> _Part:
        return self._comparison(_EQUALITIES, self._relation, depth)

    def _relation(self, depth: int) -> _Part:
        return self._comparison(_RELATIONS, self._sum, depth)

    def _comparison(self, operators: Mapping[str, str], operand: _Rule, depth: int) -> _Part:
        part = operand(depth)
        while operator := self._accept(*operators):
            left, right = self._alike(part, operand(depth), operator)
            if operators is _RELATIONS and StKind.TRUTH in {left.kind, right.kind}:
                raise _no_numbers(left, right, operator)
            part = _joined(_COMPARE, StKind.TRUTH, left, operators[operator], right, _SUM, _SUM)
        return part

    def _sum(self, depth: int) -> _Part:
        part = self._product(depth)
        while operator := self._accept("+", "-"):
            left, right = self._alike(part, self._product(depth), operator)
            kind = self._number_kind(left, right, operator)
            part = _joined(_SUM, kind, left, operator, right, _SUM, _PRODUCT)
        return part

    def _product(self, depth: int) -> _Part:
        part = self._signed(depth)
        while operator := self._accept("*", "/", "MOD"):
            right = self._numeric(self._signed(depth))
            left = part if part.kind is StKind.TIME else self._numeric(part)
            kind = self._number_kind(left, right, operator)
            if operator == "MOD":
                self._warn(Text.of("the remainder of MOD has the sign of the divisor here"))
            elif operator == "/" and StKind.REAL not in {left.kind, right.kind} and left.kind is not StKind.TIME:
                self._warn(Text.of("`/` of two integers is not rounded here"))
            part = _joined(_PRODUCT, kind, left, "%" if operator == "MOD" else operator, right, _PRODUCT, _SIGNED)
        return part

    def _signed(self, depth: int) -> _Part:
        if not (operator := self._accept("NOT", "-", "+")):
            return self._atom(depth)
        operand = self._signed(self._deeper(depth))
        if operator == "NOT":
            operand = self.need(operand, StKind.TRUTH)
            return _Part(f"not {_within(operand, _NOT)}", _NOT, StKind.TRUTH)
        operand = operand if operand.kind is StKind.TIME else self._numeric(operand)
        return operand if operator == "+" else _Part(f"-{_within(operand, _SIGNED)}", _SIGNED, operand.kind)

    def _atom(self, depth: int) -> _Part:
        token = self._next
        if token is None:
            raise StError(Text.of("the condition ends where a value is expected"))
        if self._accept("("):
            part = self.disjunction(self._deeper(depth))
            if not self._accept(")"):
                raise StError(Text.of("the parenthesis at character {position} is not closed", position=token.at))
            return part
        literal = literal_of(token)
        if literal is not None:
            self._at += 1
            return _literal_part(literal)
        if token.sort == "word" and token.text.upper() not in _OPERATORS:
            return self._name()
        if token.text == "%":
            raise StError(Text.of("an address such as %IX0.0 is not carried over: declare a variable"))
        raise _unexpected(token)

    def _name(self) -> _Part:
        path = [self._tokens[self._at].text]
        self._at += 1
        while self._accept("."):
            token = self._next
            if token is None or token.sort != "word":
                raise StError(Text.of("a member of {name!r} without a name is not carried over", name=cut(path[0])))
            path.append(token.text)
            self._at += 1
        name = ".".join(path)
        if self._accept("("):
            raise StError(Text.of("the call {name}(…) is not carried over", name=cut(name)))
        if self._accept("["):
            raise StError(Text.of("an element of the array {name!r} is not carried over", name=cut(name)))
        if self._accept("^"):
            raise StError(Text.of("the pointer {name!r} is not carried over", name=cut(name)))
        is_variable = len(path) == 1 and path[0].upper() in self._scope.variables
        is_step = path[0].upper() in self._scope.steps and not is_variable
        return self._step_part(path) if is_step else self._variable_part(path)

    def _step_part(self, path: list[str]) -> _Part:
        step = self._scope.steps[path[0].upper()]
        match [member.upper() for member in path[1:]]:
            case ["X"]:
                return _Part(f"{step_text(step)}.X", _ATOM, StKind.TRUTH)
            case ["T"]:
                return _Part(f"{step_text(step)}.T", _ATOM, StKind.TIME)
            case _:
                name = cut(".".join(path))
                raise StError(Text.of("{name!r} is not carried over: a step has X and T", name=name))

    def _variable_part(self, path: list[str]) -> _Part:
        variable = self._scope.variables.get(path[0].upper(), PlcVariable(path[0]))
        if variable.expression and len(path) == 1:
            return _Part(f"({variable.expression})", _ATOM, StKind.ANY)
        if variable.is_constant and variable.initial:
            return _literal_part(constant_of(variable, self._scope)) if len(path) == 1 else _refused_constant(variable)
        name = ".".join([variable.name, *path[1:]])
        name = self._scope.spelling.setdefault(name.upper(), name)
        if variable.name in _WORDS:
            raise StError(Text.of("the variable {name!r} has the name of a word of expressions: rename it", name=name))
        self.names[name] = None
        kind = variable.kind if len(path) == 1 else StKind.ANY
        initial = variable.initial if len(path) == 1 else ""
        return _Part(name, _ATOM, kind, name, initial)

    def need(self, part: _Part, kind: StKind) -> _Part:
        """Return a part as one of a kind. Raises StError where it is of another one."""
        part = _as_truth(part, _Part("", _ATOM, kind))
        if part.kind not in {kind, StKind.ANY}:
            text = cut(part.text)
            raise StError(
                Text.of("{text} is of type {kind}; {wanted} is needed", text=text, kind=part.kind, wanted=kind)
            )
        return self._with_default(part, kind)

    def _numeric(self, part: _Part) -> _Part:
        return self.need(part, part.kind if part.kind in _NUMBERS else StKind.INTEGER)

    def _with_default(self, part: _Part, kind: StKind) -> _Part:
        if not (part.variable and self._scope.has_defaults) or kind is StKind.ANY:
            return part
        self.names.pop(part.variable, None)
        value = _initial(part, kind)
        return _Part(f"coalesce({part.text}, {value})", _ATOM, kind)

    def _alike(self, left: _Part, right: _Part, operator: str) -> tuple[_Part, _Part]:
        """Return two operands that are compared or added, each with what the other one says about its kind."""
        left, right = _as_truth(left, right), _as_truth(right, left)
        kinds = {left.kind, right.kind} - {StKind.ANY}
        if len(kinds - _NUMBERS) + bool(kinds & _NUMBERS) > 1:
            raise StError(
                Text.of(
                    "{operator} of {left} and {right}: they are of different types",
                    operator=operator,
                    left=cut(left.text),
                    right=cut(right.text),
                )
            )
        kind = next(iter(sorted(kinds, reverse=True)), StKind.ANY)
        return self._with_default(left, left.kind or kind), self._with_default(right, right.kind or kind)

    def _number_kind(self, left: _Part, right: _Part, operator: str) -> StKind:
        if {left.kind, right.kind} & {StKind.TRUTH, StKind.STRING}:
            raise _no_numbers(left, right, operator)
        if StKind.TIME in {left.kind, right.kind}:
            return StKind.TIME
        return StKind.REAL if StKind.REAL in {left.kind, right.kind} else left.kind or right.kind

    def _warn(self, text: Text) -> None:
        self.warnings[text.id] = text

    def _deeper(self, depth: int) -> int:
        if depth >= MAX_DEPTH:
            raise StError(Text.of("the condition is nested deeper than {limit}", limit=MAX_DEPTH))
        return depth + 1


def _unexpected(token: StToken) -> StError:
    return StError(Text.of("{text!r} at character {position} is not expected", text=cut(token.text), position=token.at))


def _no_numbers(left: _Part, right: _Part, operator: str) -> StError:
    return StError(
        Text.of(
            "{operator} of {left} and {right}: numbers are needed",
            operator=operator,
            left=cut(left.text),
            right=cut(right.text),
        )
    )


def _literal_part(literal: StLiteral) -> _Part:
    return _Part(literal.text, _SIGNED if literal.text.startswith("-") else _ATOM, literal.kind)


def _refused_constant(variable: PlcVariable) -> _Part:
    raise StError(Text.of("the constant {name!r} has members; they are not carried over", name=cut(variable.name)))


def _as_truth(part: _Part, other: _Part) -> _Part:
    """Return the literals 0 and 1 as FALSE and TRUE where the other side is a truth value."""
    if other.kind is StKind.TRUTH and part.kind is StKind.INTEGER and part.text in {"0", "1"}:
        return _Part("true" if part.text == "1" else "false", _ATOM, StKind.TRUTH)
    return part


def _initial(part: _Part, kind: StKind) -> str:
    if not part.initial:
        return _ZERO[kind]
    literal = _constant_literal(part.initial)
    return _ZERO[kind] if literal is None else _as_truth(_literal_part(literal), _Part("", _ATOM, kind)).text


def constant_of(variable: PlcVariable, scope: Scope) -> StLiteral:
    """Return the value of a constant: a literal, or that of another constant. Raises StError."""
    seen: set[str] = set()
    while True:
        literal = _constant_literal(variable.initial)
        if literal is not None:
            return literal
        seen.add(variable.name.upper())
        other = scope.variables.get(variable.initial.strip().upper())
        if other is None or not other.is_constant or not other.initial or other.name.upper() in seen:
            name, value = cut(variable.name), cut(variable.initial)
            raise StError(
                Text.of("the value {value!r} of the constant {name!r} is not a literal", name=name, value=value)
            )
        variable = other


def _constant_literal(text: str) -> StLiteral | None:
    tokens = tokens_of(text)
    sign = ""
    if len(tokens) > 1 and tokens[0].text in {"-", "+"}:
        sign = tokens[0].text.strip("+")
        tokens = tokens[1:]
    literal = literal_of(tokens[0]) if len(tokens) == 1 else None
    if literal is None or not sign:
        return literal
    return StLiteral(f"-{literal.text}", literal.kind) if literal.kind in {*_NUMBERS, StKind.TIME} else None


def _within(part: _Part, rank: int) -> str:
    return part.text if part.rank >= rank else f"({part.text})"


def _joined(rank: int, kind: StKind, left: _Part, word: str, right: _Part, left_rank: int, right_rank: int) -> _Part:
    text = f"{_within(left, left_rank)} {word} {_within(right, right_rank)}"
    if len(text) > 2 * MAX_LENGTH:
        raise StError(Text.of("the condition is longer than {limit} characters", limit=MAX_LENGTH))
    return _Part(text, rank, kind)


def step_text(step: str) -> str:
    """Return the begin of what expressions know of a step: `steps.S`, in brackets where the name is not a word."""
    return f"steps.{step}" if step.isidentifier() else "steps[" + quoted(step) + "]"


def quoted(text: str) -> str:
    """Return a text as a string of expressions."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
