"""Reads history: samples of tags in order of time, one chunk in memory at a time."""

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import BinaryIO, Final

import structlog

from edge.features.telemetry.history.arrow_chunk import SampleChunk, decode_chunk
from edge.features.telemetry.history.day_files import DayFile, day_of, list_files
from edge.features.telemetry.history.gzip_member import GzipMember, members, read_content
from edge.ports.sample_lines import Sample
from edge.ports.tag_pattern import matches

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
        yield from sorted(of_chunk, key=lambda each: each.at)


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
        logger.error("history chunk cannot be read", file=file.path.name, reason=str(error))  # noqa: TRY400 - the reason says all
        return None
