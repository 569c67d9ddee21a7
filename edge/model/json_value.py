"""Reads JSON that a person wrote in a file, within the limits of a message; values with a type that JSON lacks.

The value of a parameter is plain JSON when JSON expresses its type. An Int32, a Float or a DateTime of an OPC UA client
travels and is stored as `{"UaType": 6, "Value": 7}`, so that it keeps its type; a recipe and its equipment see the 7
only.
"""

import codecs
import json
import math
import re
from typing import Any, Final

import msgspec

from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.cloudevent import JSON, decode_data


def read_json_text(text: bytes) -> Any:
    """Decode a JSON text within the limits of a message; the byte order mark of some editors is ignored.

    Raises Refused(`unreadable`) for what is not JSON, and for what a gateway would refuse as a message.
    """
    plain = text.removeprefix(codecs.BOM_UTF8)
    try:
        # The strict decoder below reports a byte offset; an author needs line and column.
        json.loads(plain)
    except (ValueError, RecursionError) as error:
        raise Refused("unreadable", Text.of("not JSON: {reason}", reason=_reason(error)), "Correct the file.") from None
    return decode_data(JSON, plain)


_JSON_REASONS: Final = {
    text.id: text
    for text in (
        Text.of("Expecting value"),
        Text.of("Expecting property name enclosed in double quotes"),
        Text.of("Expecting ':' delimiter"),
        Text.of("Expecting ',' delimiter"),
        Text.of("Illegal trailing comma before end of object"),
        Text.of("Illegal trailing comma before end of array"),
        Text.of("Extra data"),
        Text.of("Unterminated string starting at"),
        Text.of("Invalid control character at"),
        Text.of("Invalid \\escape"),
        Text.of("Invalid \\uXXXX escape"),
    )
}
"""What the decoder of Python 3.11 to 3.13 reports, in its words."""


def _reason(error: Exception) -> Text:
    match error:
        case json.JSONDecodeError(msg=reason, lineno=line, colno=column, pos=at):
            # Some of its reasons end with a colon, others do not.
            return Text.of(
                "{reason}: line {line} column {column} (char {at})",
                reason=_JSON_REASONS.get(reason.rstrip(": "), reason),
                line=line,
                column=column,
                at=at,
            )
        case RecursionError():
            return Text.of("it is nested too deeply")
        case _:
            return Text(str(error))


_LONG_INTEGERS = frozenset({8, 9})
_INTEGER = re.compile(r"-?[0-9]{1,20}")


class ExactValue(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """A value with its built-in type (OPC 10000-6, table 1); with `dimensions` it is a matrix, row by row."""

    ua_type: int = msgspec.field(name="UaType")
    value: object = msgspec.field(name="Value")
    dimensions: tuple[int, ...] = msgspec.field(default=(), name="Dimensions")

    def as_json(self) -> dict[str, object]:
        """Return the object as it is sent."""
        form: dict[str, object] = {"UaType": self.ua_type, "Value": self.value}
        return form | {"Dimensions": list(self.dimensions)} if self.dimensions else form


def exact_value(value: object) -> ExactValue | None:
    """Read a value in the form that names its type; return None for other values."""
    if not isinstance(value, dict) or "UaType" not in value:
        return None
    try:
        return msgspec.convert(value, ExactValue)
    except msgspec.ValidationError:
        return None


def plain_value(value: object) -> object:
    """Return a value without its type, for conditions and equipment."""
    if isinstance(value, list | tuple):
        return [plain_value(item) for item in value]
    exact = exact_value(value)
    if exact is None:
        return value
    if exact.ua_type in _LONG_INTEGERS:
        # Written as text: other JSON parsers lose digits of such numbers.
        return [_integer(item) for item in exact.value] if isinstance(exact.value, list) else _integer(exact.value)
    return plain_value(exact.value)


def _integer(text: object) -> object:
    return int(text) if isinstance(text, str) and _INTEGER.fullmatch(text) else text


LONGEST_TEXT: Final = 200
"""Characters of a value in a list for people and programs."""


def short_value(value: Any) -> Any:
    """Return a value for a list: a number that JSON lacks as its name, an array or object as JSON, a long text cut."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case None | bool() | int() | float():
            return value
        case str():
            text = value
        case _:
            text = msgspec.json.encode(value, order="deterministic").decode()
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"
