"""The data of Open Protocol messages by tables of fields: the same table decodes and encodes."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any, assert_never

from msgspec import Struct

from edge.foundation.errors import Refused
from edge.foundation.text import Text

_DATE_FORMAT = "%Y-%m-%d:%H:%M:%S"
_DECIMAL = re.compile(r"-?\d+\.\d+")


class FieldKind(Enum):
    """How the characters of a field are read."""

    NUMBER = auto()
    """A number that the message needs: a count, the number of a message."""
    COUNT = auto()
    """A number that is compared; text is None."""
    CODE = auto()
    """A number that is only shown; text is taken as it is, as makes write it."""
    HUNDREDTHS = auto()
    """A number with two decimals, without the point: torques, always in N·m unless a unit is reported.

    One with a point is taken as it is, other text is None.
    """
    TEXT = auto()
    DATE = auto()
    NUMBERS = auto()
    """A count, then as many numbers of the same width."""


class DataField(Struct, frozen=True):
    """One field. `number` is its parameter id, two digits before the value; 0 means none. `count` is that of a list.

    A number or a date that is blank is None. A date that is not a date is None: controllers write words there. An
    optional field that is missing or wrong is None, as are those after it.
    """

    name: str
    width: int
    kind: FieldKind = FieldKind.NUMBER
    number: int = 0
    count: int = 0
    is_optional: bool = False


Layout = tuple[DataField, ...]


def decode_data(layout: Layout, data: bytes) -> dict[str, Any]:
    """Decode data by its table; what follows the last field is of a later revision, and ignored.

    Raises Refused(`unreadable`) with the field that is missing or wrong.
    """
    values: dict[str, Any] = {}
    at = 0
    for place, field in enumerate(layout):
        try:
            values[field.name], at = _read(field, data, _after_id(field, data, at))
        except Refused:
            if not field.is_optional:
                raise
            return values | dict.fromkeys(missing.name for missing in layout[place:])
    return values


def encode_data(layout: Layout, values: Mapping[str, Any]) -> bytes:
    """Encode values by their table; a missing value is zero or blank.

    Raises Refused(`parameters`) for a value that has no room in its field.
    """
    return b"".join(_written(layout, values))


def _written(layout: Layout, values: Mapping[str, Any]) -> Iterator[bytes]:
    for field in layout:
        if field.number:
            yield f"{field.number:02d}".encode()
        value = values.get(field.name)
        if field.kind is FieldKind.NUMBERS:
            yield _number(field, len(value or ()), field.count)
            yield from (_number(field, item, field.width) for item in value or ())
        else:
            yield _encode(field, value)


def _after_id(field: DataField, data: bytes, at: int) -> int:
    """Return the place of the value after its parameter id."""
    if not field.number:
        return at
    named = data[at : at + 2]
    if named != f"{field.number:02d}".encode():
        raise Refused(
            "unreadable",
            Text.of(
                "{field}: expected parameter {number:02d}, found {named!r}",
                field=field.name,
                number=field.number,
                named=named,
            ),
        )
    return at + 2


def _read(field: DataField, data: bytes, at: int) -> tuple[Any, int]:
    if field.kind is not FieldKind.NUMBERS:
        return _decode(field, _take(field, data, at, field.width)), at + field.width
    count = _as_number(field, _take(field, data, at, field.count)) or 0
    first = at + field.count
    ends = [first + n * field.width for n in range(count + 1)]
    return [_as_number(field, _take(field, data, end, field.width)) for end in ends[:-1]], ends[-1]


def _take(field: DataField, data: bytes, at: int, width: int) -> bytes:
    found = data[at : at + width]
    if len(found) < width:
        raise Refused(
            "unreadable",
            Text.of("{field}: the message ends before it, at {count} bytes of data", field=field.name, count=len(data)),
        )
    return found


def _decode(field: DataField, raw: bytes) -> Any:
    match field.kind:
        case FieldKind.NUMBER | FieldKind.NUMBERS:
            return _as_number(field, raw)
        case FieldKind.COUNT:
            return _as_count(raw)
        case FieldKind.CODE:
            return _as_code(raw)
        case FieldKind.HUNDREDTHS:
            return _as_hundredths(raw)
        case FieldKind.TEXT:
            return _as_text(raw)
        case FieldKind.DATE:
            return _as_date(raw)
        case _:
            assert_never(field.kind)


def _encode(field: DataField, value: Any) -> bytes:
    match field.kind:
        case FieldKind.HUNDREDTHS:
            return _number(field, round((value or 0) * 100), field.width)
        case FieldKind.TEXT:
            text = str(value or "")
            if not text.isascii() or not text.isprintable() or len(text) > field.width:
                raise Refused(
                    "parameters",
                    Text.of(
                        "{field}: {text!r} is not at most {width} ASCII characters",
                        field=field.name,
                        text=text,
                        width=field.width,
                    ),
                )
            return text.encode().ljust(field.width)
        case FieldKind.DATE:
            # The year of strftime has no leading zeros.
            return (f"{value.year:04d}-{value:%m-%d:%H:%M:%S}" if value else "").encode().ljust(field.width)
        case _:
            return _number(field, value or 0, field.width)


def _number(field: DataField, value: int, width: int) -> bytes:
    text = f"{value:0{width}d}"
    if len(text) > width:
        raise Refused(
            "parameters",
            Text.of("{field}: {value} has more than {width} digits", field=field.name, value=value, width=width),
        )
    return text.encode()


def _as_number(field: DataField, raw: bytes) -> int | None:
    text = raw.strip(b" \0")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise Refused(
            "unreadable", Text.of("{field}: expected a number, found {raw}", field=field.name, raw=repr(raw[:20]))
        ) from None


def _as_count(raw: bytes) -> int | None:
    code = _as_code(raw)
    return code if isinstance(code, int) else None


def _as_code(raw: bytes) -> int | str | None:
    text = _as_text(raw)
    if not text.lstrip("-").isdecimal() or not text.isascii():
        return text or None
    return int(text)


def _as_hundredths(raw: bytes) -> float | None:
    code = _as_code(raw)
    if isinstance(code, int):
        return code / 100
    # A number with its point is not hundredths.
    return float(code) if code and _DECIMAL.fullmatch(code) else None


def _as_text(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # Controllers with names in Latin-1 or Chinese characters; each byte becomes one character.
        text = raw.decode("latin-1")
    # A code with a control character is another one than without it: it is written as an escape.
    return "".join(map(_visible, text.strip(" \0\t\r\n")))


def _visible(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def _as_date(raw: bytes) -> datetime | None:
    try:
        date = datetime.strptime(raw.decode("ascii").strip(" \0"), _DATE_FORMAT)  # noqa: DTZ007 - local time, without a zone
    except (UnicodeDecodeError, ValueError):
        return None
    # The year 1 is how a program writes that there is no date.
    return date if date.year > 1 else None
