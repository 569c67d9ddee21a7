"""Reads history: samples of tags in order of time, one chunk in memory at a time."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from edge.errors import Refused
from edge.rules.pattern import matches
from edge.rules.sample_lines import Sample
from edge.telemetry.history.arrow_chunk import SampleChunk, decode_chunk
from edge.telemetry.history.day_files import DayFile, day_of, list_files
from edge.telemetry.history.gzip_member import GzipMember, members, read_content

logger = structlog.get_logger(__name__)

END_OF_TIME: Final = 1 << 62
MAX_PAGE: Final = 10_000
_LAST_MS: Final = 253_402_300_799_000
"""The end of the year 9999."""


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """Samples of one tag in order of time; with an empty cursor there are no more."""

    samples: tuple[Sample, ...]
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class _Place:
    """A chunk, and the number of its samples that were read already."""

    file: str = ""
    offset: int = 0
    skip: int = 0


def read_page(directory: Path, tag: str, start: int, end: int, limit: int = MAX_PAGE, cursor: str = "") -> HistoryPage:
    """Read samples of a tag from `start` to before `end`, at most `limit`; continue with the cursor of a page before.

    Raises Refused for a cursor of another form, OSError for a file that cannot be read.
    """
    found: list[Sample] = []
    place = _parse_cursor(cursor)
    for file, member, chunk in _chunks(directory, start, end, place):
        skip = place.skip if (file.path.name, member.offset) == (place.file, place.offset) else 0
        wanted = list(islice(chunk.samples(tag, start, end), skip, skip + limit - len(found) + 1))
        room = limit - len(found)
        found += wanted[:room]
        if len(wanted) > room:
            return HistoryPage(tuple(found), f"{file.path.name}:{member.offset}:{skip + room}")
    return HistoryPage(tuple(found))


def read_samples(
    directory: Path, patterns: Collection[str], start: int = 0, end: int = END_OF_TIME
) -> Iterator[Sample]:
    """Yield the samples of all tags that match one of the patterns, in order of time. Raises OSError."""
    for _, _, chunk in _chunks(directory, start, end, _Place()):
        tags = [tag for tag in chunk.tags() if any(matches(pattern, tag) for pattern in patterns)]
        of_chunk = [sample for tag in tags for sample in chunk.samples(tag, start, end)]
        yield from sorted(of_chunk, key=lambda each: each.at)


def _chunks(directory: Path, start: int, end: int, place: _Place) -> Iterator[tuple[DayFile, GzipMember, SampleChunk]]:
    """Yield the chunks with samples of a time from a place on; a damaged one is logged and left out."""
    first, last = day_of(max(0, start)), day_of(min(max(0, end), _LAST_MS))
    for file in list_files(directory):
        if not first <= file.day <= last or (file.day, file.part) < _day_and_part(directory, place.file):
            continue
        try:
            with file.path.open("rb") as opened:
                offset = place.offset if file.path.name == place.file else 0
                for member in members(opened, offset):
                    if (
                        member.rows
                        and member.first < end
                        and member.last >= start
                        and (chunk := _chunk(opened, file, member))
                    ):
                        yield file, member, chunk
        except FileNotFoundError:
            # It was the oldest, and was removed meanwhile.
            continue


def _chunk(opened: BinaryIO, file: DayFile, member: GzipMember) -> SampleChunk | None:
    try:
        return decode_chunk(read_content(opened, member))
    except ValueError as error:
        logger.error("history chunk cannot be read", file=file.path.name, reason=str(error))  # noqa: TRY400 - the reason says all
        return None


def _day_and_part(directory: Path, name: str) -> tuple[str, int]:
    return next(((each.day, each.part) for each in list_files(directory) if each.path.name == name), ("", 0))


def _parse_cursor(cursor: str) -> _Place:
    if not cursor:
        return _Place()
    name, _, rest = cursor.partition(":")
    offset, _, skip = rest.partition(":")
    if not (offset.isdecimal() and skip.isdecimal()) or "/" in name:
        raise Refused("invalid_cursor", f"{cursor!r} is no cursor of a page", "Start without one.")
    return _Place(name, int(offset), int(skip))
