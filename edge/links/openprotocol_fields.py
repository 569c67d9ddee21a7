"""The data of Open Protocol messages by tables of fields: the same table decodes and encodes."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from enum import Enum, auto
from typing import Any, assert_never

from msgspec import Struct

from edge.errors import Refused

_DATE_FORMAT = "%Y-%m-%d:%H:%M:%S"


class FieldKind(Enum):
    """How the characters of a field are read."""

    NUMBER = auto()
    HUNDREDTHS = auto()
    """A number with two decimals, without the point: torques, always in N·m unless a unit is reported."""
    TEXT = auto()
    DATE = auto()
    NUMBERS = auto()
    """A count, then as many numbers of the same width."""


class DataField(Struct, frozen=True):
    """One field. `number` is its parameter id, two digits before the value; 0 means none. `count` is that of a list.

    A number or a date that is blank is None. A date that is no date is None: controllers write words there.
    """

    name: str
    width: int
    kind: FieldKind = FieldKind.NUMBER
    number: int = 0
    count: int = 0


Layout = tuple[DataField, ...]


def decode_data(layout: Layout, data: bytes) -> dict[str, Any]:
    """Decode data by its table; what follows the last field is of a later revision, and ignored.

    Raises Refused(`unreadable`) with the field that is missing or wrong.
    """
    values: dict[str, Any] = {}
    at = 0
    for field in layout:
        if field.number:
            named = data[at : at + 2]
            if named != f"{field.number:02d}".encode():
                raise Refused("unreadable", f"{field.name}: expected parameter {field.number:02d}, found {named!r}")
            at += 2
        values[field.name], at = _read(field, data, at)
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
            yield from (_number(field, each, field.width) for each in value or ())
        else:
            yield _encode(field, value)


def _read(field: DataField, data: bytes, at: int) -> tuple[Any, int]:
    if field.kind is not FieldKind.NUMBERS:
        return _decode(field, _take(field, data, at, field.width)), at + field.width
    count = _as_number(field, _take(field, data, at, field.count)) or 0
    first = at + field.count
    ends = [first + n * field.width for n in range(count + 1)]
    return [_as_number(field, _take(field, data, each, field.width)) for each in ends[:-1]], ends[-1]


def _take(field: DataField, data: bytes, at: int, width: int) -> bytes:
    found = data[at : at + width]
    if len(found) < width:
        raise Refused("unreadable", f"{field.name}: the message ends before it, at {len(data)} bytes of data")
    return found


def _decode(field: DataField, raw: bytes) -> Any:
    match field.kind:
        case FieldKind.NUMBER | FieldKind.NUMBERS:
            return _as_number(field, raw)
        case FieldKind.HUNDREDTHS:
            number = _as_number(field, raw)
            return None if number is None else number / 100
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
                raise Refused("parameters", f"{field.name}: {text!r} is not at most {field.width} ASCII characters")
            return text.encode().ljust(field.width)
        case FieldKind.DATE:
            return (value.strftime(_DATE_FORMAT) if value else "").encode().ljust(field.width)
        case _:
            return _number(field, value or 0, field.width)


def _number(field: DataField, value: int, width: int) -> bytes:
    text = f"{value:0{width}d}"
    if len(text) > width:
        raise Refused("parameters", f"{field.name}: {value} has more than {width} digits")
    return text.encode()


def _as_number(field: DataField, raw: bytes) -> int | None:
    text = raw.strip(b" \0")
    if not text:
        return None
    try:
        return int(text)
    except ValueError:
        raise Refused("unreadable", f"{field.name}: expected a number, found {raw[:20]!r}") from None


def _as_text(raw: bytes) -> str:
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        # Controllers with names in Latin-1 or Chinese characters; each byte becomes one character.
        text = raw.decode("latin-1")
    return "".join(each for each in text if each.isprintable()).strip()


def _as_date(raw: bytes) -> datetime | None:
    try:
        return datetime.strptime(raw.decode("ascii").strip(" \0"), _DATE_FORMAT)  # noqa: DTZ007 - local time, without a zone
    except (UnicodeDecodeError, ValueError):
        return None
