"""Appends rows to a file of columns: a gzipped Arrow stream as that of the history, a member for each append.

The first rows decide the columns and their types. A null in all of them makes a column of numbers.
"""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
import nanoarrow as na

from edge.features.flows.nodes.kind import NodeError
from edge.foundation.column_file import (
    encode_batch,
    encode_member,
    end_of_whole_members,
    flag_column,
    instant_column,
    members,
    number_column,
    read_content,
    text_column,
)
from edge.foundation.files import append_whole
from edge.foundation.text import Text

TIME: Final = "time"
_MODE: Final = 0o640
_NUMBER: Final = "a number"
_FLAG: Final = "true or false"
_TEXT: Final = "text"
_TYPES: Final = {_NUMBER: Text.of("a number"), _FLAG: Text.of("true or false"), _TEXT: Text.of("text")}
_ARROW_TYPES: Final = {na.Type.DOUBLE: _NUMBER, na.Type.BOOL: _FLAG, na.Type.STRING: _TEXT}

Columns = Mapping[str, str]
"""The type of each column but the time."""


def append_columns(path: Path, at: int, rows: Sequence[Mapping[str, Any]], largest: int) -> int:
    """Append rows of an instant and return the size of the file; a full file becomes the previous one.

    Raises NodeError for rows that do not fit the file, OSError when it cannot be written.
    """
    known = _columns_of_file(path)
    if known is not None and path.stat().st_size > largest:
        path.replace(path.with_name(f"{path.name}.previous"))
        known = None
    columns = known or _columns_of_rows(rows)
    batch = _batch(path.name, columns, at, rows)
    content = encode_member(encode_batch(batch, with_schema=False), at, at, len(rows))
    if known is None:
        content = encode_member(_schema_of(columns), 0, 0, 0) + content
    return append_whole(path, content, _MODE)


def _columns_of_file(path: Path) -> Columns | None:
    """Return the columns of a file, None for a new one; remove what a power cut left behind its last whole member."""
    if not path.exists() or not path.stat().st_size:
        return None
    with path.open("r+b") as file:
        end = end_of_whole_members(file)
        if end < file.seek(0, 2):
            file.truncate(end)
        first = next(members(file), None)
        if first is None:
            return None
        schema = na.ArrayStream.from_readable(io.BytesIO(read_content(file, first))).schema
    return {field.name: _ARROW_TYPES[field.type] for field in schema.fields if field.name != TIME}


def _columns_of_rows(rows: Sequence[Mapping[str, Any]]) -> Columns:
    first: dict[str, Any] = {}
    for row in rows:
        for name, value in row.items():
            if first.get(name) is None:
                first[name] = value
    return {name: _NUMBER if value is None else _type_of(value) for name, value in first.items()}


def _type_of(value: Any) -> str:
    match value:
        case bool():
            return _FLAG
        case int() | float():
            return _NUMBER
        case _:
            return _TEXT


def _batch(file: str, columns: Columns, at: int, rows: Sequence[Mapping[str, Any]]) -> Any:
    for row in rows:
        if row.keys() != columns.keys():
            raise NodeError(
                Text.of(
                    "{file} has the columns {columns}, the value has {found}",
                    file=file,
                    columns=", ".join(columns),
                    found=", ".join(row),
                )
            )
    encoded = [instant_column([at] * len(rows))]
    encoded += [_column(file, name, kind, [row[name] for row in rows]) for name, kind in columns.items()]
    return na.c_array_from_buffers(_arrow_schema(columns), len(rows), [None], children=encoded)


def _column(file: str, name: str, kind: str, values: Sequence[Any]) -> Any:
    wrong = next((value for value in values if value is not None and kind not in {_TEXT, _type_of(value)}), None)
    if wrong is not None:
        raise NodeError(
            Text.of(
                "column {column} of {file} holds {expected}, the value is {found}",
                column=name,
                file=file,
                expected=_TYPES[kind],
                found=_TYPES[_type_of(wrong)],
            )
        )
    match kind:
        case "a number":
            try:
                return number_column([None if value is None else float(value) for value in values])
            except OverflowError:
                raise NodeError(
                    Text.of("column {column} of {file}: the number is too large", column=name, file=file)
                ) from None
        case "true or false":
            return flag_column(values)
        case _:
            return text_column([_text(value) for value in values], nullable=True)


def _text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else msgspec.json.encode(value).decode()


def _arrow_schema(columns: Columns) -> Any:
    kinds = {_NUMBER: na.float64(), _FLAG: na.bool_(), _TEXT: na.string()}
    time = {TIME: na.timestamp("ms", "UTC", nullable=False)}
    return na.struct(time | {name: kinds[kind] for name, kind in columns.items()}, nullable=False)


def _schema_of(columns: Columns) -> bytes:
    empty = _batch("", columns, 0, ())
    return encode_batch(empty, with_schema=True).removesuffix(encode_batch(empty, with_schema=False))
