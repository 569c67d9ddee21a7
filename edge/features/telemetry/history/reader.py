"""Reads history, one chunk in memory at a time: samples of tags in order of time, or one tag in pages."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import structlog
from msgspec import Struct

from edge.features.telemetry.history.arrow_chunk import SampleChunk, decode_chunk
from edge.features.telemetry.history.day_files import DayFile, GzipMember, day_of, list_files, members, read_content
from edge.foundation.errors import Refused
from edge.ports.sample_lines import Sample
from edge.ports.tag import matches

logger = structlog.get_logger(__name__)

END_OF_TIME: Final = 1 << 62
LAST_MS: Final = 253_402_300_799_000
"""The end of the year 9999."""


def read_samples(
    directory: Path, patterns: Collection[str], start: int = 0, end: int = END_OF_TIME
) -> Iterator[Sample]:
    """Yield the samples of all tags that match one of the patterns, in order of time. Raises OSError."""
    for chunk in _chunks(directory, start, end):
        tags = [tag for tag in chunk.tags() if any(matches(pattern, tag) for pattern in patterns)]
        of_chunk = [sample for tag in tags for sample in chunk.samples(tag, start, end)]
        yield from sorted(of_chunk, key=lambda item: item.at)


def _chunks(directory: Path, start: int, end: int) -> Iterator[SampleChunk]:
    """Yield the chunks with samples of a time; a damaged one is logged and left out."""
    first, last = day_of(max(0, start)), day_of(min(max(0, end), LAST_MS))
    for file in list_files(directory):
        if not first <= file.day <= last:
            continue
        try:
            with file.path.open("rb") as opened:
                for member in members(opened):
                    is_wanted = member.rows and member.first < end and member.last >= start
                    if is_wanted and (chunk := decode_member(opened, file, member)):
                        yield chunk
        except FileNotFoundError:
            # It was the oldest, and was removed meanwhile.
            continue


def decode_member(opened: BinaryIO, file: DayFile, member: GzipMember) -> SampleChunk | None:
    """Return the chunk of a member; None for a damaged one, which is logged. The file begins with its schema."""
    try:
        schema = next(members(opened))
        return decode_chunk(read_content(opened, member), read_content(opened, schema))
    except ValueError as error:
        logger.error("history chunk cannot be read", file=file.path.name, reason=str(error))
        return None


class HistoryPage(Struct, frozen=True):
    """Samples of one tag in the order of reading; with an empty cursor there are no more."""

    samples: tuple[Sample, ...]
    cursor: str = ""


class _ChunkPlace(Struct, frozen=True):
    """A chunk, and the number of its samples that were read already."""

    file: str = ""
    offset: int = 0
    skip: int = 0


def read_page(
    directory: Path, tag: str, start: int, end: int, limit: int, cursor: str = "", *, is_backward: bool = False
) -> HistoryPage:
    """Read samples of a tag from `start` to before `end`, at most `limit`; backwards the newest comes first.

    Continue with the cursor of a page before. Raises Refused for a cursor of another form, OSError for a file that
    cannot be read.
    """
    found: list[Sample] = []
    place = _parse_cursor(cursor)
    for file, member, chunk in _chunks_of_page(directory, start, end, place, is_backward=is_backward):
        skip = place.skip if (file.path.name, member.offset) == (place.file, place.offset) else 0
        ordered = list(chunk.samples(tag, start, end))
        wanted = (ordered[::-1] if is_backward else ordered)[skip:]
        room = limit - len(found)
        found += wanted[:room]
        if len(wanted) > room:
            return HistoryPage(tuple(found), f"{file.path.name}:{member.offset}:{skip + room}")
    return HistoryPage(tuple(found))


def _chunks_of_page(
    directory: Path, start: int, end: int, place: _ChunkPlace, *, is_backward: bool
) -> Iterator[tuple[DayFile, GzipMember, SampleChunk]]:
    """Yield the chunks with samples of a time from a place on; a damaged one is logged and left out."""
    first, last = day_of(max(0, start)), day_of(min(max(0, end), LAST_MS))
    files = [day_file for day_file in list_files(directory) if first <= day_file.day <= last]
    at = next((number for number, day_file in enumerate(files) if day_file.path.name == place.file), None)
    if at is not None:
        files = files[: at + 1] if is_backward else files[at:]
    for file in reversed(files) if is_backward else files:
        is_place = file.path.name == place.file
        try:
            with file.path.open("rb") as opened:
                inside = [gzip_member for gzip_member in members(opened) if _is_wanted(gzip_member, start, end)]
                for member in reversed(inside) if is_backward else inside:
                    passed = member.offset > place.offset if is_backward else member.offset < place.offset
                    is_read = is_place and passed
                    if not is_read and (chunk := decode_member(opened, file, member)):
                        yield file, member, chunk
        except FileNotFoundError:
            # It was the oldest, and was removed meanwhile.
            continue


def _is_wanted(member: GzipMember, start: int, end: int) -> bool:
    return bool(member.rows) and member.first < end and member.last >= start


def _parse_cursor(cursor: str) -> _ChunkPlace:
    if not cursor:
        return _ChunkPlace()
    name, _, rest = cursor.partition(":")
    offset, _, skip = rest.partition(":")
    if not (offset.isdecimal() and skip.isdecimal()) or "/" in name:
        raise Refused("invalid_cursor", f"{cursor!r} is not a cursor of a page", "Start without one.")
    return _ChunkPlace(name, int(offset), int(skip))
