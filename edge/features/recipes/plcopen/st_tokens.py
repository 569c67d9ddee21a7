"""Splits Structured Text (IEC 61131-3, 6.1 and 7.3) into tokens, and reads its literals."""

from __future__ import annotations

import re
from decimal import Decimal
from enum import StrEnum
from typing import Final

from msgspec import Struct

from edge.features.recipes.plcopen.finding import cut
from edge.foundation.text import Text


class StError(Exception):
    """A text that cannot be carried over; `text` says why."""

    def __init__(self, text: Text) -> None:
        super().__init__(str(text))
        self.text = text


class StKind(StrEnum):
    """What a value is, as messages name it."""

    TRUTH = "BOOL"
    INTEGER = "INT"
    REAL = "REAL"
    TIME = "TIME"
    STRING = "STRING"
    ANY = ""
    """Not known: of a variable without a declaration, or of a type of the user."""


_KINDS: Final = {
    "BOOL": StKind.TRUTH,
    **dict.fromkeys(("SINT", "INT", "DINT", "LINT", "USINT", "UINT", "UDINT", "ULINT"), StKind.INTEGER),
    **dict.fromkeys(("BYTE", "WORD", "DWORD", "LWORD"), StKind.INTEGER),
    **dict.fromkeys(("REAL", "LREAL"), StKind.REAL),
    **dict.fromkeys(("TIME", "LTIME"), StKind.TIME),
    **dict.fromkeys(("STRING", "WSTRING"), StKind.STRING),
}


def kind_of_type(name: str) -> StKind:
    """Return the kind of an elementary type; ANY for other types."""
    return _KINDS.get(name.upper(), StKind.ANY)


class StToken(Struct, frozen=True):
    """A token: its sort (a group of the pattern), its text, and its first character, counted from 1."""

    sort: str
    text: str
    at: int


class StLiteral(Struct, frozen=True):
    """A literal as our expressions write it, and its kind."""

    text: str
    kind: StKind


_TOKEN: Final = re.compile(
    r"""
      (?P<space>\s+|//[^\n]*|/\*.*?\*/|\{[^}]*\})
    | (?P<comment>\(\*)
    | (?P<time>(?i:T|TIME|LT|LTIME)\#[+-]?[\w.]+)
    | (?P<typed>[^\W\d]\w*\#(?:'(?:[^'$]|\$.)*'|"(?:[^"$]|\$.)*"|[+-]?[\w.\#]+))
    | (?P<number>\d[\d_]*\#[0-9A-Za-z_]+|\d[\d_]*(?:\.\d[\d_]*)?(?:[eE][+-]?\d+)?(?!\w))
    | (?P<string>'(?:[^'$]|\$.)*'|"(?:[^"$]|\$.)*")
    | (?P<word>[^\W\d]\w*)
    | (?P<symbol>:=|<>|<=|>=|\*\*|=>|[=<>()+\-*/&.,;\[\]%^])
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT_ENDS: Final = re.compile(r"\(\*|\*\)")


def tokens_of(text: str) -> list[StToken]:
    """Return the tokens of a text without comments and pragmas. Raises StError."""
    tokens = []
    at = 0
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise StError(
                Text.of(
                    "{text!r} at character {position} cannot be read", text=cut(text[at : at + 12]), position=at + 1
                )
            )
        if match.lastgroup == "comment":
            at = _after_comment(text, match.end())
            continue
        if match.lastgroup != "space":
            tokens.append(StToken(str(match.lastgroup), match.group(), at + 1))
        at = match.end()
    return tokens


def _after_comment(text: str, at: int) -> int:
    """Return where a comment ends; comments nest."""
    start, depth = at, 1
    while depth:
        match = _COMMENT_ENDS.search(text, at)
        if match is None:
            raise StError(Text.of("the comment at character {position} has no end", position=start - 1))
        depth += 1 if match.group() == "(*" else -1
        at = match.end()
    return at


_DURATION: Final = re.compile(r"(?:\d[\d_]{0,30}(?:\.\d[\d_]{0,30})?(?:us|ns|ms|[dhms])_?)+", re.IGNORECASE)
_DURATION_PART: Final = re.compile(r"(\d[\d_]*(?:\.\d[\d_]*)?)(us|ns|ms|[dhms])", re.IGNORECASE)
_UNITS: Final = {
    "d": Decimal(86400),
    "h": Decimal(3600),
    "m": Decimal(60),
    "s": Decimal(1),
    "ms": Decimal("1e-3"),
    "us": Decimal("1e-6"),
    "ns": Decimal("1e-9"),
}


def read_duration(text: str) -> Decimal | None:
    """Return the seconds of a duration literal such as `T#1m30s` or `TIME#5s` (6.3.3); None where it is not one."""
    prefix, separator, value = text.strip().partition("#")
    if prefix.upper() not in {"T", "TIME", "LT", "LTIME"} or not separator:
        return None
    sign = -1 if value.startswith("-") else 1
    value = value.lstrip("+-") if value[:1] in {"+", "-"} else value
    if _DURATION.fullmatch(value) is None:
        return None
    parts = _DURATION_PART.findall(value)
    return sign * sum((Decimal(number.replace("_", "")) * _UNITS[unit.lower()] for number, unit in parts), Decimal(0))


_LARGEST: Final = 2**63 - 1
_BASES: Final = {"2": 2, "8": 8, "16": 16}
_ESCAPES: Final = {"$": "$", "'": "'", '"': '"', "L": "\n", "N": "\n", "P": "\f", "R": "\r", "T": "\t"}
_BOOLEANS: Final = {"TRUE": "true", "1": "true", "FALSE": "false", "0": "false"}


def literal_of(token: StToken) -> StLiteral | None:
    """Return the literal that a token is; None where it is not one. Raises StError for one that is not carried over."""
    text = token.text
    match token.sort:
        case "number":
            return _number(text)
        case "time":
            seconds = read_duration(text)
            if seconds is None:
                raise StError(Text.of("{text!r} is not a duration", text=cut(text)))
            return StLiteral(f"{seconds.normalize():f}s", StKind.TIME)
        case "string":
            return StLiteral(_string(text), StKind.STRING)
        case "typed":
            return _typed(text)
        case "word" if text.upper() in {"TRUE", "FALSE"}:
            return StLiteral(_BOOLEANS[text.upper()], StKind.TRUTH)
        case _:
            return None


def _typed(text: str) -> StLiteral:
    name, _, value = text.partition("#")
    kind = kind_of_type(name)
    if kind is StKind.TRUTH and value.upper() in _BOOLEANS:
        return StLiteral(_BOOLEANS[value.upper()], kind)
    if kind is StKind.STRING and value[:1] in {"'", '"'}:
        return StLiteral(_string(value), kind)
    sign, digits = (value[0], value[1:]) if value[:1] in {"+", "-"} else ("", value)
    if kind in {StKind.INTEGER, StKind.REAL} and _TOKEN.fullmatch(digits) and digits[0].isdigit():
        return StLiteral(f"{sign.strip('+')}{_number(digits).text}", kind)
    raise StError(Text.of("{text!r} is not carried over: a value of this type has no form here", text=cut(text)))


def _number(text: str) -> StLiteral:
    base, separator, digits = text.replace("_", "").partition("#")
    try:
        if separator:
            return _integer(int(digits, _BASES[base]))
        if base.isdecimal():
            return _integer(int(base))
        return StLiteral(repr(_finite(float(base))), StKind.REAL)
    except (ValueError, KeyError, OverflowError):
        raise StError(Text.of("the number {text!r} cannot be read", text=cut(text))) from None


def _integer(value: int) -> StLiteral:
    if value > _LARGEST:
        raise OverflowError
    return StLiteral(str(value), StKind.INTEGER)


def _finite(value: float) -> float:
    if value == float("inf"):
        raise OverflowError
    return value


def _string(text: str) -> str:
    quote = text[0]
    size = 4 if quote == '"' else 2
    value = re.sub(rf"\$([0-9A-Fa-f]{{{size}}}|.)", _unescaped, text[1:-1], flags=re.DOTALL)
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unescaped(match: re.Match[str]) -> str:
    code = match.group(1)
    if len(code) > 1:
        return chr(int(code, 16))
    if code.upper() in _ESCAPES:
        return _ESCAPES[code.upper()]
    raise StError(Text.of("a string with the unknown escape ${code}", code=cut(code)))
