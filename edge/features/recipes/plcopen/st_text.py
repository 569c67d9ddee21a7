"""Writes expressions of recipes as Structured Text (IEC 61131-3, 7.3.2), where it has the same meaning."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Final

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
    children,
    names_of,
    needed_kinds,
    parse,
)
from edge.features.recipes.plcopen.st import PlcVariable, Scope, translate
from edge.features.recipes.plcopen.st_tokens import StError, StKind

_OR, _AND, _EQUAL, _RELATION, _SUM, _PRODUCT, _SIGN, _ATOM = range(8)
_PLAIN_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,99}")
_KEYWORDS: Final = frozenset(
    re.findall(
        r"\w+",
        """ACTION AND ARRAY AT BY CASE CONSTANT CONTINUE DO ELSE ELSIF EN END_ACTION END_CASE END_FOR END_IF END_REPEAT
        END_STEP END_TRANSITION END_VAR END_WHILE ENO EXIT FALSE FOR FROM FUNCTION IF INITIAL_STEP MOD NOT NULL OF OR
        PROGRAM REPEAT RETURN STEP STRUCT THEN THIS SUPER TO TRANSITION TRUE TYPE UNTIL USING VAR WHILE WITH XOR BOOL
        INT DINT REAL LREAL TIME STRING WSTRING DATE TOD DT BYTE WORD DWORD SINT LINT UINT USINT UDINT ULINT LWORD
        LTIME CHAR T""",
    )
)
_OPERATORS: Final = {"==": "=", "!=": "<>"}
_KINDS: Final = {Kind.TRUTH: StKind.TRUTH, Kind.NUMBER: StKind.REAL, Kind.STRING: StKind.STRING}
_LAST_PRINTABLE: Final = "~"


class _NoFormError(Exception):
    """A part of an expression that Structured Text lacks."""


def is_plain_name(name: str) -> bool:
    """Return whether a name is an identifier of IEC 61131-3 and not a word of its languages."""
    return _PLAIN_NAME.fullmatch(name) is not None and name.upper() not in _KEYWORDS


def declare_variables(texts: Iterable[str], used: Iterable[str]) -> dict[str, PlcVariable]:
    """Return the variables that conditions need, by their names in upper case.

    A variable whose name is used by something else, or whose kind is unclear, is not among them.
    """
    kinds: dict[str, set[Kind]] = {}
    spelling: dict[str, set[str]] = {}
    for text in texts:
        node = parse(text)
        for name in names_of(node):
            if len(name.path) == 1 and is_plain_name(str(name.path[0])):
                spelling.setdefault(str(name.path[0]).upper(), set()).add(str(name.path[0]))
        for part, kind in needed_kinds(node, Kind.TRUTH):
            if isinstance(part, Name) and len(part.path) == 1:
                kinds.setdefault(str(part.path[0]), set()).add(kind)
    used_names = {name.upper() for name in used}
    variables = {}
    for key, names in spelling.items():
        only = min(names)
        if key not in used_names and len(names) == 1 and len(kinds.get(only, ())) == 1:
            variables[key] = PlcVariable(only, _KINDS[next(iter(kinds[only]))])
    return variables


def st_of(text: str, steps: Mapping[str, str], variables: Mapping[str, PlcVariable]) -> str:
    """Return a condition in Structured Text, or an empty text where it has no equal there.

    `steps` are the names of steps in the PLC. The text is translated back: it is returned where that is the same.
    """
    node = parse(text)
    try:
        written = _part(node, steps, variables, _OR)
        scope = Scope({name.upper(): step for step, name in steps.items()}, variables, spelling={})
        again = parse(translate(written, scope).text)
    except (_NoFormError, StError, ExpressionSyntaxError):
        return ""
    return written if _shape(again) == _shape(node) else ""


def _shape(node: Node) -> tuple[object, ...]:
    """Return a node without the places of its parts, to compare two of them."""
    parts = tuple(_shape(child) for child in children(node))
    match node:
        case Literal(value=value):
            return (type(node), isinstance(value, bool), value)
        case Name(path=path):
            return (type(node), path)
        case Junction(word=word):
            return (type(node), word, parts)
        case Compare(operator=operator):
            return (type(node), operator, parts)
        case Arithmetic(rest=rest):
            return (type(node), tuple(operator for operator, _ in rest), parts)
        case Call(function=function):
            return (type(node), function, parts)
        case Not() | Negative() | MemberTest():
            return (type(node), parts)


def _part(node: Node, steps: Mapping[str, str], variables: Mapping[str, PlcVariable], rank: int) -> str:
    """Return a node as text that binds at least as tightly as a rank. Raises _NoFormError."""
    text, own = _written(node, steps, variables)
    return text if own >= rank else f"({text})"


def _written(node: Node, steps: Mapping[str, str], variables: Mapping[str, PlcVariable]) -> tuple[str, int]:
    def part(child: Node, rank: int) -> str:
        return _part(child, steps, variables, rank)

    match node:
        case Literal(value=value):
            return _literal(value)
        case Name(path=path):
            return _name(path, steps, variables), _ATOM
        case Not(operand=operand):
            return f"NOT {part(operand, _SIGN)}", _SIGN
        case Negative(operand=operand):
            return f"-{part(operand, _ATOM)}", _SIGN
        case Junction(word=word, operands=operands):
            rank = _AND if word == "and" else _OR
            return f" {word.upper()} ".join(part(operand, rank + 1) for operand in operands), rank
        case Compare():
            return _comparison(node, steps, variables)
        case Arithmetic(first=first, rest=rest):
            rank = _SUM if rest[0][0] in {"+", "-"} else _PRODUCT
            if any(operator in {"/", "%"} for operator, _ in rest):
                raise _NoFormError
            return " ".join([part(first, rank), *(f"{word} {part(child, rank + 1)}" for word, child in rest)]), rank
        case Call() | MemberTest():
            raise _NoFormError


def _comparison(node: Compare, steps: Mapping[str, str], variables: Mapping[str, PlcVariable]) -> tuple[str, int]:
    operator = _OPERATORS.get(node.operator, node.operator)
    rank = _EQUAL if node.operator in _OPERATORS else _RELATION
    sides = (node.left, node.right)
    is_time = any(_is_time(side) for side in sides)
    texts = [
        _time(side) if is_time and isinstance(side, Literal) else _side(side, steps, variables, rank + 1)
        for side in sides
    ]
    return f"{texts[0]} {operator} {texts[1]}", rank


def _side(node: Node, steps: Mapping[str, str], variables: Mapping[str, PlcVariable], rank: int) -> str:
    if _is_time(node) and isinstance(node, Name):
        return f"{steps[str(node.path[1])]}.T"
    return _part(node, steps, variables, rank)


def _is_time(node: Node) -> bool:
    match node:
        case Name(path=("steps", str(), "T")):
            return True
        case _:
            return False


def _time(literal: Literal) -> str:
    value = literal.value
    if isinstance(value, (bool, str)) or value < 0:
        raise _NoFormError
    return f"T#{Decimal(repr(value)).normalize():f}s"


def _name(path: tuple[str | int, ...], steps: Mapping[str, str], variables: Mapping[str, PlcVariable]) -> str:
    match path:
        case ("steps", str() as step, "X"):
            return f"{steps[step]}.X"
        case (str() as name,) if name.upper() in variables and is_plain_name(name):
            return name
        case _:
            raise _NoFormError


def _literal(value: float | str) -> tuple[str, int]:
    match value:
        case bool():
            return ("TRUE" if value else "FALSE"), _ATOM
        case str():
            if not all(" " <= character <= _LAST_PRINTABLE for character in value):
                raise _NoFormError
            return "'" + value.replace("$", "$$").replace("'", "$'") + "'", _ATOM
        case _:
            if not math.isfinite(value):
                raise _NoFormError
            mantissa, _, exponent = repr(value).partition("e")
            number = mantissa if not exponent else f"{mantissa if '.' in mantissa else mantissa + '.0'}e{exponent}"
            return number, _SIGN if value < 0 else _ATOM
