"""Reads the history of a tag in parts: raw values, aggregates of intervals, values at instants."""

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol, TypeAlias

from asyncua import ua
from msgspec.structs import replace

from edge.features.telemetry.history.reader import END_OF_TIME, HistoryPage, read_page
from edge.features.telemetry.opcua.gateway_items import tag_item
from edge.features.telemetry.opcua.history_aggregates import SampleInterval, number_of
from edge.features.telemetry.opcua.history_values import (
    STATUS_OF,
    VALUES_PER_NODE,
    AtTime,
    HistoryPart,
    PartRoom,
    Processed,
    Raw,
    ValueEncoder,
)
from edge.opcua.time_slices import Turn
from edge.ports.sample_lines import Quality, Sample
from edge.ports.tag import TagDefinitions

LOOK_BACK_MS: Final = 86_400_000
"""How far before an instant the value that holds then is sought, and how far beyond a range its bounds."""
INTERVALS_PER_READ: Final = 1_000
_OF_INTERVAL: Final = PartRoom(5_000, 1 << 20)
_ONE: Final = PartRoom(1, 1 << 20)
_SECONDS_PER_PART: Final = 3.0
_WRITE_S: Final = 0.01
_LATEST_MS: Final = 253_370_764_800_000
"""The year 9999: the instant of a missing bound of a range without an end."""
_RAW: Final = 0
_INTERPOLATED: Final = 0x402


_Bound: TypeAlias = tuple[int, Any, int]
"""Instant, value and status."""


class Buffer(Protocol):
    """The samples that are not in files yet."""

    revision: int
    """Odd while samples are moved to the files."""

    def buffered(self, tag: str, start: int, end: int) -> list[Sample]:
        """Return the samples of a tag from `start` to before `end`."""


class TagHistory:
    """Reads the files of a directory, and the samples that are not in files yet."""

    def __init__(
        self, directory: Path, buffer: Buffer | None = None, definitions: TagDefinitions | None = None
    ) -> None:
        self._directory = directory
        self._buffer = buffer
        self._definitions = definitions or TagDefinitions()

    async def read(
        self, rest: Raw | Processed | AtTime, room: PartRoom, timestamps: ua.TimestampsToReturn, turn: Turn
    ) -> HistoryPart:
        """Read the next part. Raises OSError for a file that cannot be read."""
        item = tag_item(self._definitions, rest.tag)
        encoder = ValueEncoder(timestamps, item.convert)
        match rest:
            case Raw():
                return await self._raw(rest, room, encoder, turn)
            case Processed():
                return await self._processed(rest, room.values, encoder, turn)
            case AtTime():
                return await self._at_time(rest, room, encoder, turn)

    async def _raw(self, rest: Raw, room: PartRoom, encoder: ValueEncoder, turn: Turn) -> HistoryPart:
        size = min(rest.limit or VALUES_PER_NODE, VALUES_PER_NODE, room.values)
        values: list[bytes] = []
        if rest.is_read:
            return HistoryPart([encoder.value(*bound) for bound in await self._end_bound(rest, turn)], 1)
        if rest.bounds and not rest.is_continued:
            values += [encoder.value(*bound) for bound in await self._start_bound(rest, turn)]
        page = await self._page(rest, PartRoom(size - len(values), room.size), turn)
        for sample in page.samples:
            values.append(encoder.sample(sample))
            await turn.step()
        if page.cursor:
            return HistoryPart(values, len(values), replace(rest, cursor=page.cursor, is_continued=True))
        bounds = [encoder.value(*bound) for bound in await self._end_bound(rest, turn)] if rest.bounds else []
        if len(values) + len(bounds) > size:
            return HistoryPart(values, len(values), replace(rest, is_continued=True, is_read=True))
        return HistoryPart([*values, *bounds], len(values) + len(bounds))

    async def _start_bound(self, rest: Raw, turn: Turn) -> list[_Bound]:
        """Return the value next to the start, or that there is none; nothing where the values begin with it."""
        at = rest.start if rest.start is not None else rest.end
        if at is None:
            return []
        sample = await (self._after(rest.tag, at, turn) if rest.is_backward else self._before(rest.tag, at + 1, turn))
        return [] if sample is not None and sample.at == at else [_bound_of(sample, at)]

    async def _end_bound(self, rest: Raw, turn: Turn) -> list[_Bound]:
        """Return the value next to the end, or that there is none; nothing where the values end with it."""
        at = rest.end if rest.start is not None else None
        if at is None:
            return [_bound_of(None, 0 if rest.is_backward else _LATEST_MS)]
        sample = await (self._before(rest.tag, at + 1, turn) if rest.is_backward else self._after(rest.tag, at, turn))
        is_shown = sample is not None and sample.at == at == rest.start
        return [] if is_shown else [_bound_of(sample, at)]

    async def _page(self, rest: Raw, room: PartRoom, turn: Turn) -> HistoryPage:
        if rest.is_backward:
            newest = rest.end if rest.start is None else rest.start
            oldest = rest.end if rest.start is not None else None
            # Backwards the start is included, and the end is not.
            first = 0 if oldest is None else oldest + 1
            last = END_OF_TIME if newest is None else newest + 1
            return await self._read(rest.tag, first, last, room, rest.cursor, turn, is_backward=True)
        # Equal instants request the values at this instant.
        end = END_OF_TIME if rest.end is None else rest.end + (rest.end == rest.start)
        return await self._read(rest.tag, rest.start or 0, end, room, rest.cursor, turn)

    async def _read(
        self, tag: str, start: int, end: int, room: PartRoom, cursor: str, turn: Turn, *, is_backward: bool = False
    ) -> HistoryPage:
        """Read a page of the files and of what is not in files yet."""
        while True:
            revision = self._buffer.revision if self._buffer else 0
            if revision % 2:
                await _have_a_pause(turn)
                continue
            unwritten = self._buffer.buffered(tag, start, end) if self._buffer else ()
            read = partial(
                read_page,
                *(self._directory, tag, start, end, room.values, cursor),
                is_backward=is_backward,
                unwritten=unwritten,
                room=room.size,
            )
            page = await turn.read(read)
            if self._buffer is None or self._buffer.revision == revision:
                return page

    async def _before(self, tag: str, at: int, turn: Turn) -> Sample | None:
        page = await self._read(tag, max(0, at - LOOK_BACK_MS), at, _ONE, "", turn, is_backward=True)
        return page.samples[0] if page.samples else None

    async def _after(self, tag: str, at: int, turn: Turn) -> Sample | None:
        page = await self._read(tag, at, at + LOOK_BACK_MS, _ONE, "", turn)
        return page.samples[0] if page.samples else None

    async def _processed(self, rest: Processed, left: int, encoder: ValueEncoder, turn: Turn) -> HistoryPart:
        lowest, highest = sorted((rest.start, rest.end))
        total = -(-(highest - lowest) // rest.interval)
        size = min(total - rest.done, left, INTERVALS_PER_READ)
        starts = [_interval_start(rest, number) for number in range(rest.done, rest.done + size)]
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SECONDS_PER_PART
        values: list[bytes] = []
        held: float | None = None
        before = await self._before(rest.tag, starts[0][0] if starts else lowest, turn)
        held = number_of(before) if before is not None and before.quality is not Quality.BAD else None
        for start, end in starts:
            interval = SampleInterval(start, end, held, uncertain_is_bad=rest.uncertain_is_bad)
            cursor = ""
            while True:
                page = await self._read(rest.tag, start, end, _OF_INTERVAL, cursor, turn)
                for sample in page.samples:
                    interval.add(sample)
                    await turn.step()
                cursor = page.cursor
                if not cursor:
                    break
            result = interval.result(rest.aggregate)
            held = interval.held
            stamp = end if rest.end < rest.start else start
            encode = encoder.count if rest.aggregate == "Count" else encoder.value
            values.append(encode(stamp, result.value, result.status))
            if loop.time() > deadline:
                break
        done = rest.done + len(values)
        return HistoryPart(values, len(values), replace(rest, done=done) if done < total else None)

    async def _at_time(self, rest: AtTime, room: PartRoom, encoder: ValueEncoder, turn: Turn) -> HistoryPart:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _SECONDS_PER_PART
        values: list[bytes] = []
        bytes_left = room.size
        for at in rest.times[rest.done : rest.done + room.values]:
            sample = await self._before(rest.tag, at + 1, turn)
            if sample is None:
                values.append(encoder.value(at, None, int(ua.StatusCodes.BadNoData)))
            else:
                exact = _RAW if sample.at == at else _INTERPOLATED
                values.append(encoder.value(at, sample.value, STATUS_OF[sample.quality] | exact))
            await turn.step()
            bytes_left -= len(values[-1])
            if loop.time() > deadline or bytes_left <= 0:
                break
        done = rest.done + len(values)
        return HistoryPart(values, len(values), replace(rest, done=done) if done < len(rest.times) else None)


def _bound_of(found: Sample | None, at: int) -> _Bound:
    """Return a sample as bound; without one, that there is none (OPC 10000-11, 4.6: FIRST and LAST)."""
    if found is None:
        return at, None, int(ua.StatusCodes.BadBoundNotFound)
    return found.at, found.value, STATUS_OF[found.quality]


def _interval_start(rest: Processed, number: int) -> tuple[int, int]:
    """Return start and end of an interval; backwards the first one ends at the start of the request."""
    if rest.start < rest.end:
        start = rest.start + number * rest.interval
        return start, min(start + rest.interval, rest.end)
    end = rest.start - number * rest.interval
    return max(end - rest.interval, rest.end), end


async def _have_a_pause(turn: Turn) -> None:
    """Wait while samples are written; other sessions have their turn."""
    turn.end()
    try:
        await asyncio.sleep(_WRITE_S)
    finally:
        await turn.begin()
