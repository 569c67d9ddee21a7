"""Appends values to CSV files and files of columns in the folder of the gateway; each has one previous file."""

import asyncio
import csv
import io
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import AppendToFile
from edge.foundation.files import append_whole
from edge.foundation.instant import Clock
from edge.foundation.text import Text

LARGEST_FILE: Final = 10 << 20
"""In bytes; each file has one previous file of that size."""
_TIME: Final = "time"
_VALUE: Final = "value"
_MODE: Final = 0o640


class FileAppender:
    """Appends lines, each written and synchronised at once."""

    def __init__(self, directory: Path, clock: Clock, largest: int = LARGEST_FILE) -> None:
        self._directory = directory
        self._clock = clock
        self._largest = largest
        self._lock = asyncio.Lock()

    async def append(self, action: AppendToFile, _action_id: str) -> dict[str, Any]:
        """Append a value and return the size of the file; raises NodeError.

        The members of an object are the columns of a new file; later objects need the same members. A list of objects
        is one row each.
        """
        rows = _rows(action.value)
        async with self._lock:
            try:
                size = await asyncio.to_thread(self._append, self._directory / action.file, rows)
            except OSError as error:
                raise NodeError(Text.of("{file}: {reason}", file=action.file, reason=error.strerror or error)) from None
        return {"file": action.file, "bytes": size}

    def _append(self, path: Path, rows: Sequence[Mapping[str, Any]]) -> int:
        if any(_TIME in row for row in rows):
            fault = Text.of(
                "{file}: a member has the name {column} of the column of the instant", file=path.name, column=_TIME
            )
            raise NodeError(fault)
        self._directory.mkdir(parents=True, exist_ok=True)
        if path.suffix != ".csv":
            return _append_columns(path, self._clock(), rows, self._largest)
        return self._append_lines(path, rows)

    def _append_lines(self, path: Path, rows: Sequence[Mapping[str, Any]]) -> int:
        time = datetime.fromtimestamp(self._clock() / 1000, UTC).isoformat(timespec="milliseconds")
        columns = _columns(path)
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if columns is None or path.stat().st_size > self._largest:
            if columns is not None:
                path.replace(path.with_name(f"{path.name}.previous"))
            columns = [_TIME, *rows[0]]
            writer.writerow(columns)
        for row in rows:
            timed = {_TIME: time, **row}
            if set(columns) != set(timed):
                raise NodeError(
                    Text.of(
                        "{file} has the columns {columns}, the value has {found}",
                        file=path.name,
                        columns=", ".join(columns),
                        found=", ".join(timed),
                    )
                )
            writer.writerow([_cell(timed[column]) for column in columns])
        return append_whole(path, text.getvalue().encode(errors="replace"), _MODE)


def _rows(value: Any) -> Sequence[Mapping[str, Any]]:
    match value:
        case Mapping():
            return [value]
        case [Mapping(), *_] if all(isinstance(item, Mapping) for item in value):
            return list(value)
        case _:
            return [{_VALUE: value}]


def _append_columns(path: Path, at: int, rows: Sequence[Mapping[str, Any]], largest: int) -> int:
    try:
        # The library is an extra of the package.
        from edge.features.flows.ports.columns import append_columns  # noqa: PLC0415
    except ImportError:
        raise NodeError(Text.of("files of columns need nanoarrow: pip install 'microdcs-edge[history]'")) from None
    return append_columns(path, at, rows, largest)


def _columns(path: Path) -> list[str] | None:
    """Return the header of a file; None for a file that is new or empty."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file), None)
    except FileNotFoundError:
        return None


def _cell(value: object) -> object:
    return value if value is None or isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()
