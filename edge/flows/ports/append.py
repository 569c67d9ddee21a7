"""Appends values to CSV files in the folder of the gateway; a file that is full becomes the previous one."""

import asyncio
import csv
import io
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from edge.flows.nodes.act import AppendToFile
from edge.flows.nodes.kind import NodeError
from edge.instant import Clock

LARGEST_FILE: Final = 10 << 20
"""In bytes; each file has one previous file of that size."""
_TIME: Final = "time"
_VALUE: Final = "value"


class FileAppender:
    """Appends lines, each written and synchronised at once."""

    def __init__(self, directory: Path, clock: Clock, largest: int = LARGEST_FILE) -> None:
        self._directory = directory
        self._clock = clock
        self._largest = largest
        self._lock = asyncio.Lock()

    async def append(self, action: AppendToFile, _task_id: str) -> dict[str, Any]:
        """Append a value and return the size of the file; raises NodeError.

        The members of an object are the columns of a new file; later objects need the same members.
        """
        if not action.file.endswith(".csv"):
            raise NodeError(f"{action.file}: this release writes .csv files only")
        row = action.value if isinstance(action.value, Mapping) else {_VALUE: action.value}
        time = datetime.fromtimestamp(self._clock() / 1000, UTC).isoformat(timespec="milliseconds")
        async with self._lock:
            try:
                size = await asyncio.to_thread(self._write, action.file, {_TIME: time, **row})
            except OSError as error:
                raise NodeError(f"{action.file}: {error.strerror or error}") from None
        return {"file": action.file, "bytes": size}

    def _write(self, name: str, row: Mapping[str, Any]) -> int:
        self._directory.mkdir(parents=True, exist_ok=True)
        path = self._directory / name
        columns = _columns(path)
        if columns is not None and set(columns) != set(row):
            raise NodeError(f"{name} has the columns {', '.join(columns)}, the value has {', '.join(row)}")
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if columns is None or path.stat().st_size > self._largest:
            if columns is not None:
                path.replace(path.with_name(f"{name}.previous"))
            columns = list(row)
            writer.writerow(columns)
        writer.writerow([_cell(row[column]) for column in columns])
        with path.open("a", encoding="utf-8") as file:
            file.write(text.getvalue())
            file.flush()
            os.fsync(file.fileno())
        return path.stat().st_size


def _columns(path: Path) -> list[str] | None:
    """Return the header of a file; None for a file that is new or empty."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return next(csv.reader(file), None)
    except FileNotFoundError:
        return None


def _cell(value: object) -> object:
    return value if value is None or isinstance(value, (str, int, float)) else msgspec.json.encode(value).decode()
