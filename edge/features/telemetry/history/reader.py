"""Reads history, one chunk in memory at a time: samples of tags in order of time, or one tag in pages.

Late samples are in a later chunk of their day than others of their time, so chunks of a day may overlap. The next
samples of a day are the first ones of all its chunks that begin before them.
"""

import bisect
import contextlib
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import structlog
from msgspec import Struct

from edge.features.telemetry.history.arrow_chunk import SAMPLE_BYTES, SampleChunk, decode_chunk
from edge.features.telemetry.history.day_files import DayFile, day_of, list_files
from edge.foundation.column_file import GzipMember, members, read_content
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.ports.sample_lines import Sample
from edge.ports.tag import matches

logger = structlog.get_logger(__name__)

END_OF_TIME: Final = 1 << 62
NO_LIMIT: Final = 1 << 62
LAST_MS: Final = 253_402_300_799_000
"""The end of the year 9999."""
_AT_A_TIME: Final = 20_000
_UNWRITTEN: Final = 1 << 16
"""The part of samples that are not in files yet: the last one of their day."""

_RowsOf: TypeAlias = Callable[[SampleChunk, int, int], Sequence[int]]
"""The rows of a chunk that are wanted, from an instant to before another one, in order of time."""


def read_samples(
    directory: Path, patterns: Collection[str], start: int = 0, end: int = END_OF_TIME
) -> Iterator[Sample]:
    """Yield the samples of all tags that match one of the patterns, in order of time. Raises OSError."""

    def rows_of(chunk: SampleChunk, first: int, last: int) -> Sequence[int]:
        tags = (tag for tag in chunk.tags() if any(matches(pattern, tag) for pattern in patterns))
        return sorted(itertools.chain.from_iterable(chunk.rows(tag, first, last) for tag in tags), key=chunk.at)

    order, skip = _Order(directory, rows_of), 0
    while True:
        bound = _Bound(_AT_A_TIME, skip)
        samples = order.first_samples(start, end, bound)
        yield from samples[skip:]
        if len(samples) < bound.most:
            return
        start = samples[-1].at
        skip = _count_at(samples, start)


class _Bound(Struct, frozen=True):
    """How far samples are read: `skip` of them were read before, then `count`, until these have more than `room` bytes.

    The sample that goes beyond the room is the last one.
    """

    count: int
    skip: int = 0
    room: int = NO_LIMIT

    @property
    def most(self) -> int:
        """The most samples."""
        return max(0, self.skip + self.count)

    def fitting(self, sizes: Sequence[int]) -> int:
        """Return how many of samples with these sizes are read."""
        total = 0
        for number, size in enumerate(sizes[self.skip : self.most], self.skip):
            total += size
            if total > self.room:
                return number + 1
        return min(len(sizes), self.most)

    def after(self, sizes: Sequence[int]) -> "_Bound":
        """Return what is left behind samples with these sizes; `most` is 0 when nothing is."""
        room = self.room - sum(sizes[self.skip :])
        count = self.count - max(0, len(sizes) - self.skip)
        return _Bound(count if room >= 0 else 0, max(0, self.skip - len(sizes)) if room >= 0 else 0, room)


def _size(sample: Sample) -> int:
    """Return about how many bytes a sample takes in memory and in an answer."""
    return SAMPLE_BYTES + (len(sample.value.encode(errors="replace")) if isinstance(sample.value, str) else 0)


def _place(at: int, part: int, offset: int, row: int) -> int:
    """Return the place of a sample in the order of time, and of writing where the instant is the same."""
    return (at << 128) + (part << 88) + (offset << 32) + row


class _Order:
    """The samples of a history in order of time, backwards the newest first; `unwritten` are not in files yet."""

    def __init__(
        self, directory: Path, rows_of: _RowsOf, unwritten: Iterable[Sample] = (), *, is_backward: bool = False
    ) -> None:
        self._directory = directory
        self._rows_of = rows_of
        self._sign = -1 if is_backward else 1
        self._unwritten: dict[str, list[Sample]] = {}
        for sample in unwritten:
            self._unwritten.setdefault(day_of(sample.at), []).append(sample)

    def first_samples(self, start: int, end: int, bound: _Bound) -> list[Sample]:
        """Return the first samples from `start` to before `end`, as far as the bound. Raises OSError."""
        samples: list[Sample] = []
        for day, files in self._days(start, end).items():
            of_day = self._of_day(day, files, start, end, bound)
            samples += of_day
            bound = bound.after([_size(sample) for sample in of_day])
            if not bound.most:
                break
        return samples

    def _days(self, start: int, end: int) -> Mapping[str, Sequence[DayFile]]:
        first, last = day_of(max(0, start)), day_of(min(max(0, end), LAST_MS))
        days: dict[str, list[DayFile]] = {day: [] for day in self._unwritten if first <= day <= last}
        for file in list_files(self._directory):
            if first <= file.day <= last:
                days.setdefault(file.day, []).append(file)
        return dict(sorted(days.items(), reverse=self._sign < 0))

    def _of_day(self, day: str, files: Sequence[DayFile], start: int, end: int, bound: _Bound) -> list[Sample]:
        """Return the first samples of a day: of each chunk those that come before the last ones so far."""
        sign = self._sign
        unwritten = enumerate(self._unwritten.get(day, ()))
        placed = sorted((sign * _place(s.at, _UNWRITTEN, 0, n), s) for n, s in unwritten if start <= s.at < end)
        places, samples = [place for place, _ in placed], [sample for _, sample in placed]
        sizes = [_size(sample) for sample in samples]
        is_full = _cut(places, samples, sizes, bound)
        for file, member in self._chunks(files, start, end):
            nearest = member.first if sign > 0 else member.last
            if is_full and sign * _place(nearest, 0 if sign > 0 else _UNWRITTEN, 0, 0) > places[-1]:
                break
            if (chunk := _read_chunk(file, member)) is None:
                continue
            rows = self._rows_of(chunk, start, end)[::sign][: bound.most]
            of_rows = [chunk.size(row) for row in rows]
            rows = rows[: bound.fitting(of_rows)]
            of_chunk = [sign * _place(chunk.at(row), file.part, member.offset, row) for row in rows]
            count = bisect.bisect_left(of_chunk, places[-1]) if is_full else len(of_chunk)
            is_behind = not places or not count or of_chunk[0] > places[-1]
            places += of_chunk[:count]
            samples += map(chunk.sample, rows[:count])
            sizes += of_rows[:count]
            if not is_behind:
                order = sorted(range(len(places)), key=places.__getitem__)
                places, samples = [places[n] for n in order], [samples[n] for n in order]
                sizes = [sizes[n] for n in order]
            is_full = _cut(places, samples, sizes, bound)
        return samples

    def _chunks(self, files: Iterable[DayFile], start: int, end: int) -> Sequence[tuple[DayFile, GzipMember]]:
        """Return the chunks with samples of a time, the one that begins first at the front."""
        found: list[tuple[DayFile, GzipMember]] = []
        for file in files:
            # It may be the oldest one, and be removed meanwhile.
            with contextlib.suppress(FileNotFoundError), file.path.open("rb") as opened:
                wanted = (member for member in members(opened) if member.rows)
                found += [(file, member) for member in wanted if member.first < end and member.last >= start]
        return sorted(found, key=lambda pair: pair[1].first if self._sign > 0 else -pair[1].last)


def _cut(places: list[int], samples: list[Sample], sizes: list[int], bound: _Bound) -> bool:
    """Remove what is beyond a bound; return whether there is no room behind the samples."""
    if len(sizes) < bound.most and sum(sizes) <= bound.room:
        return False
    count = bound.fitting(sizes)
    del places[count:], samples[count:], sizes[count:]
    return not bound.after(sizes).most


def _read_chunk(file: DayFile, member: GzipMember) -> SampleChunk | None:
    """Return the chunk of a member; None for a removed file or a damaged chunk, which is logged."""
    try:
        with file.path.open("rb") as opened:
            # A file begins with its schema.
            schema = next(members(opened))
            return decode_chunk(read_content(opened, member), read_content(opened, schema))
    except FileNotFoundError:
        return None
    except ValueError as error:
        logger.error("history chunk cannot be read", file=file.path.name, reason=str(error))
        return None


def _count_at(samples: Sequence[Sample], at: int) -> int:
    """Return how many samples at the end of some are of an instant."""
    return sum(1 for _ in itertools.takewhile(lambda sample: sample.at == at, reversed(samples)))


class HistoryPage(Struct, frozen=True):
    """Samples of one tag in order of time; with an empty cursor there are no more."""

    samples: tuple[Sample, ...]
    cursor: str = ""


def read_page(
    directory: Path,
    tag: str,
    start: int,
    end: int,
    limit: int,
    cursor: str = "",
    *,
    is_backward: bool = False,
    unwritten: Iterable[Sample] = (),
    room: int = NO_LIMIT,
) -> HistoryPage:
    """Read samples of a tag from `start` to before `end`, at most `limit`; backwards the newest comes first.

    A page of several samples has at most `room` bytes: no more of them is read from the files into memory.
    `unwritten` are its samples that are not in files yet. Continue with the cursor of a page before. Raises Refused for
    a cursor of another form, OSError for a file that cannot be read.
    """
    at, skip = _parse_cursor(cursor) or (end - 1 if is_backward else start, 0)
    start, end = (start, min(end, at + 1)) if is_backward else (max(start, at), end)

    def rows_of(chunk: SampleChunk, first: int, last: int) -> Sequence[int]:
        return chunk.rows(tag, first, last)

    order = _Order(directory, rows_of, unwritten, is_backward=is_backward)
    samples = order.first_samples(start, end, _Bound(limit + 1, skip, room))
    page = samples[skip:]
    is_full = sum(map(_size, page)) > room
    if len(page) <= limit and not is_full:
        return HistoryPage(tuple(page))
    if len(page) > min(limit, 1):
        del page[-1]
    # How many of its last instant are read: a late one of the same instant is behind them.
    following = (page[-1].at, _count_at(samples[: skip + len(page)], page[-1].at)) if page else (at, skip)
    return HistoryPage(tuple(page), f"{following[0]}:{following[1]}")


def _parse_cursor(cursor: str) -> tuple[int, int] | None:
    """Return the instant at which a page before ended, and how many of its samples were read; None without a cursor."""
    if not cursor:
        return None
    at, _, count = cursor.partition(":")
    if not (at.isdecimal() and count.isdecimal()):
        raise Refused(
            "invalid_cursor", Text.of("{cursor!r} is not a cursor of a page", cursor=cursor), "Start without one."
        )
    return int(at), int(count)
