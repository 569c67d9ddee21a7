"""The files of history: one or more for each day, appended whole chunks, the oldest removed first."""

import os
import re
import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Final

import structlog
from msgspec import Struct

from edge.features.telemetry.history.arrow_chunk import encode_chunk, encode_schema
from edge.foundation.files import append_whole, make_directory, sync
from edge.model.instant import utc
from edge.ports.sample_lines import Sample

MAX_CONTENT: Final = 64 << 20
"""Bytes of decompressed content; no member of ours comes near."""
_HEAD: Final = struct.Struct("<4sIBBH2sH")
_EXTRA: Final = struct.Struct("<IqqI")
_TAIL: Final = struct.Struct("<II")
_MAGIC: Final = b"\x1f\x8b\x08\x04"
_FIELD: Final = b"me"
_UNKNOWN_SYSTEM: Final = 255
_OVERHEAD: Final = _HEAD.size + _EXTRA.size
_LEVEL: Final = 6


class GzipMember(Struct, frozen=True):
    """The place of a member in its file, the instants of its first and last sample, and the number of samples."""

    offset: int
    length: int
    first: int
    last: int
    rows: int


def encode_member(content: bytes, first: int, last: int, rows: int) -> bytes:
    """Return content as a member; every program that reads gzip reads it."""
    compressor = zlib.compressobj(_LEVEL, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = compressor.compress(content) + compressor.flush()
    length = _OVERHEAD + len(body) + _TAIL.size
    head = _HEAD.pack(_MAGIC, 0, 0, _UNKNOWN_SYSTEM, _EXTRA.size + 4, _FIELD, _EXTRA.size)
    return (
        head
        + _EXTRA.pack(length, first, last, rows)
        + body
        + _TAIL.pack(zlib.crc32(content), len(content) & 0xFFFFFFFF)
    )


def members(file: BinaryIO) -> Iterator[GzipMember]:
    """Yield the members of a file; end at the first one that is not complete."""
    offset, size = 0, file.seek(0, 2)
    while member := _member_at(file, offset, size):
        yield member
        offset += member.length


def read_content(file: BinaryIO, member: GzipMember) -> bytes:
    """Return the content of a member. Raises ValueError when it is damaged."""
    file.seek(member.offset + _OVERHEAD)
    packed = file.read(member.length - _OVERHEAD)
    decompressor = zlib.decompressobj(-zlib.MAX_WBITS)
    try:
        content = decompressor.decompress(packed[: -_TAIL.size], MAX_CONTENT)
    except zlib.error as error:
        raise ValueError(f"the member at byte {member.offset} is damaged: {error}") from None
    if not decompressor.eof or _TAIL.unpack(packed[-_TAIL.size :]) != (zlib.crc32(content), len(content)):
        raise ValueError(f"the member at byte {member.offset} is damaged: wrong check sum")
    return content


def end_of_whole_members(file: BinaryIO) -> int:
    """Return the end of the last member that is whole; the content of those before it is not read."""
    last = None
    for last in members(file):  # noqa: B007 - only the last one is used
        pass
    if last is None:
        return 0
    try:
        read_content(file, last)
    except ValueError:
        return last.offset
    return last.offset + last.length


def _member_at(file: BinaryIO, offset: int, size: int) -> GzipMember | None:
    file.seek(offset)
    head = file.read(_OVERHEAD)
    if len(head) < _OVERHEAD:
        return None
    magic, _, _, _, extra, field, inner = _HEAD.unpack_from(head)
    if (magic, field, extra, inner) != (_MAGIC, _FIELD, _EXTRA.size + 4, _EXTRA.size):
        return None
    length, first, last, rows = _EXTRA.unpack_from(head, _HEAD.size)
    if length < _OVERHEAD + _TAIL.size or offset + length > size:
        return None
    return GzipMember(offset, length, first, last, rows)


logger = structlog.get_logger(__name__)

SUFFIX: Final = ".arrows.gz"
PARTS: Final = 8
"""A file has at most this part of the bytes that history may have, so that removing one frees a part of it only."""
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
