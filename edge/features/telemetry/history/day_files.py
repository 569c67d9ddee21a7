"""The files of history: one or more for each day, appended whole chunks, the oldest removed first."""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from edge.features.telemetry.history.arrow_chunk import SAMPLE_BYTES, encode_chunk, encode_schema
from edge.foundation.column_file import encode_member, end_of_whole_members
from edge.foundation.files import append_whole, make_directory, sync
from edge.model.instant import utc
from edge.ports.sample_lines import Sample

logger = structlog.get_logger(__name__)

SUFFIX: Final = ".arrows.gz"
PARTS: Final = 8
"""A file has at most this part of the bytes that history may have, so that removing one frees a part of it only."""
CHUNK_BYTES: Final = 1 << 20
"""About the largest chunk of several samples: decoding a larger one would hold the interpreter for milliseconds."""
_NAME: Final = re.compile(r"(\d{4}-\d\d-\d\d)(?:\.(\d{1,4}))?" + re.escape(SUFFIX))
_DAY_MS: Final = 86_400_000
_MODE: Final = 0o640
_LONGEST_TAIL: Final = 4 << 20
"""A torn chunk is shorter; more than this behind the last whole chunk is damage, not a power cut."""


class DayFile(Struct, frozen=True, order=True):
    """A file of history; files are in the order of their time."""

    day: str
    part: int
    path: Path


def day_of(at: int) -> str:
    """Return the day of an instant, in UTC."""
    return utc(at).date().isoformat()


def list_files(directory: Path) -> list[DayFile]:
    """Return the files of history in the order of their time."""
    paths = directory.iterdir() if directory.is_dir() else ()
    named = ((path, _NAME.fullmatch(path.name)) for path in paths)
    return sorted(DayFile(match[1], int(match[2] or 1), path) for path, match in named if match)


def by_day(samples: Iterable[Sample]) -> dict[str, list[Sample]]:
    """Return samples by their day."""
    days: dict[str, list[Sample]] = {}
    for sample in samples:
        days.setdefault(day_of(sample.at), []).append(sample)
    return days


def in_chunks(samples: Iterable[Sample]) -> Iterator[list[Sample]]:
    """Yield samples in chunks of about CHUNK_BYTES: a reader has a whole chunk in memory."""
    chunk: list[Sample] = []
    size = 0
    for sample in samples:
        of_sample = SAMPLE_BYTES + (len(sample.value) if isinstance(sample.value, str) else 0)
        if chunk and size + of_sample > CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
        chunk.append(sample)
        size += of_sample
    if chunk:
        yield chunk


def append_day(directory: Path, day: str, samples: Sequence[Sample], max_bytes: int) -> None:
    """Append samples of one day as a chunk, whole or not at all. Raises OSError.

    It goes to the last file of the day, or to a new one when that is large or has another schema.
    """
    instants = [sample.at for sample in samples]
    chunk = encode_member(encode_chunk(samples), min(instants), max(instants), len(samples))
    make_directory(directory, 0o750)
    of_day = [file for file in list_files(directory) if file.day == day]
    head = encode_member(encode_schema(), 0, 0, 0)
    part = of_day[-1].part if of_day else 1
    if of_day and not _has_room(of_day[-1].path, head, max_bytes // PARTS - len(chunk)):
        part += 1
    path = directory / f"{day}{f'.{part}' if part > 1 else ''}{SUFFIX}"
    if not path.exists() or not path.stat().st_size:
        append_whole(path, head, _MODE)
        _sync_directory(directory)
    append_whole(path, chunk, _MODE)


def recover(directory: Path) -> None:
    """Repair the newest file after a power cut: remove what is behind its last whole chunk. Raises OSError."""
    files = list_files(directory)
    if not files:
        return
    path = files[-1].path
    with path.open("r+b") as file:
        end = end_of_whole_members(file)
        torn = file.seek(0, os.SEEK_END) - end
        if 0 < torn <= _LONGEST_TAIL:
            file.truncate(end)
            sync(file)
    if torn > _LONGEST_TAIL:
        path.rename(path.with_name(f"{path.name}.damaged"))
    if torn:
        logger.warning("history file repaired", file=str(path), bytes=torn, set_aside=torn > _LONGEST_TAIL)


def remove_oldest(directory: Path, newest_at: int, days: int, max_bytes: int) -> int:
    """Remove the oldest files beyond the days and the bytes to keep; return the bytes that stay. Raises OSError."""
    files = list_files(directory)
    sizes = {file.path: file.path.stat().st_size for file in files}
    total = sum(sizes.values())
    oldest_day = day_of(newest_at - (days - 1) * _DAY_MS)
    for day_file in files[:-1]:
        if day_file.day >= oldest_day and total <= max_bytes:
            break
        day_file.path.unlink()
        total -= sizes[day_file.path]
        logger.info("history file removed", file=day_file.path.name, bytes=sizes[day_file.path])
    return total


def _has_room(path: Path, head: bytes, most: int) -> bool:
    """Return whether a file is small enough and begins with this schema: one of an earlier release has another."""
    with path.open("rb") as file:
        begin = file.read(len(head))
        return begin in {head, b""} and file.seek(0, os.SEEK_END) <= most


def _sync_directory(directory: Path) -> None:
    """Flush the entry of a new file to the disk."""
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
