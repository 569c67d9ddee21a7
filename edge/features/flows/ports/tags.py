"""Reads the samples of tags from the stream of telemetry, and writes derived tags to it."""

import asyncio
from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, field

from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.act import WriteTag
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.read import LatestValue, SampleWindow
from edge.features.flows.sample_history import SampleHistory, is_usable
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock
from edge.ports.batch import Batch, BatchError, decode_batch, encode_batch, fault_of, placed_line
from edge.ports.sample_lines import LineError, Sample, parse_line
from edge.store import stream_of_samples as tags
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store

_LATE_MS: Final = 60_000
_BATCH: Final = 100
_NOWHERE: Final = "0-1"
"""A position before every entry."""
_FOLLOW_S: Final = 5.0
"""The stream keeps at least its last 50 seconds: its producers append at most twenty batches in a second."""


class TagLimits(Struct, frozen=True):
    """What is kept: the tags that were read last, the newest samples of each, and samples of all, some 100 MB."""

    tags: int = 1_000
    samples_of_tag: int = 100_000
    samples: int = 300_000


_LIMITS: Final = TagLimits()


class _Kept(Struct):
    """The samples of a tag in order of time: those of `keep_ms`, or the newest `most` when there are more."""

    keep_ms: int
    most: int
    samples: list[Sample] = field(default_factory=list)

    def add(self, sample: Sample) -> None:
        insort(self.samples, sample, key=_at)
        oldest = self.samples[-1].at - self.keep_ms - _LATE_MS
        expired = min(bisect_right(self.samples, oldest, key=_at), len(self.samples) - 1)
        # Removing from the front moves all that follow: not for every sample.
        if expired > len(self.samples) // 2 or len(self.samples) > 2 * self.most:
            del self.samples[: max(expired, len(self.samples) - self.most)]


class TagReader:
    """Keeps the samples of the tags that flows read, for as long as their windows."""

    def __init__(self, stores: Sequence[Store], limits: TagLimits = _LIMITS) -> None:
        """Read the streams of these stores; the first one also holds the last value of each tag.

        Beyond the limits, the tags that were read longest ago are dropped, and read from the stream again.
        """
        self._limits = limits
        self._stores = tuple(stores)
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._positions: dict[Store, str] = {}
        self._reading = asyncio.Lock()

    async def read(self, query: LatestValue | SampleWindow, _action_id: str) -> Any:
        """Return what a query finds. Raises Unavailable when the store is gone."""
        keep_ms = query.until_ms - query.after_ms if isinstance(query, SampleWindow) else 0
        async with self._reading:
            await self._catch_up()
            kept = self._kept.get(query.tag)
            if kept is None or kept.keep_ms < keep_ms:
                kept = await self._keep(query.tag, keep_ms)
            self._kept.move_to_end(query.tag)
        found = SampleHistory({query.tag: kept.samples}).answer(query)
        return await self._saved(query) if found is None and isinstance(query, LatestValue) else found

    async def follow(self, interval_s: float = _FOLLOW_S) -> None:
        """Read the stream for windows until cancelled: it keeps samples for a shorter time than windows need."""
        while True:
            await asyncio.sleep(interval_s)
            if any(kept.keep_ms for kept in self._kept.values()):
                async with self._reading:
                    await self._catch_up()

    async def _catch_up(self) -> None:
        if not self._kept:
            return
        for store in self._stores:
            self._positions[store] = await self._scan(store, self._positions.get(store, ""), self._kept)
        while len(self._kept) > 1 and sum(len(kept.samples) for kept in self._kept.values()) > self._limits.samples:
            self._kept.popitem(last=False)

    async def _keep(self, tag: str, keep_ms: int) -> _Kept:
        """Keep one more tag, or a longer time of one, beginning with what the stream holds of it."""
        before, found = self._kept.get(tag), _Kept(keep_ms, self._limits.samples_of_tag)
        for store in self._stores:
            if self._kept:
                await self._scan(store, "", {tag: found}, self._positions.get(store) or _NOWHERE)
            else:
                self._positions[store] = await self._scan(store, "", {tag: found})
        if before and (not found.samples or before.samples[0].at < found.samples[0].at):
            found.samples = before.samples
        self._kept[tag] = found
        if len(self._kept) > self._limits.tags:
            self._kept.popitem(last=False)
        return found

    async def _scan(self, store: Store, position: str, wanted: Mapping[str, _Kept], until: str = "+") -> str:
        """Add the samples of some tags after a position; return the position of the last entry."""
        while entries := await telemetry.read_after(store, position, until, _BATCH):
            for entry in entries:
                position = entry.entry_id
                # A full entry takes a while to decode: jobs have their turn in between.
                await asyncio.sleep(0)
                try:
                    batch, _ = decode_batch(entry.fields)
                except BatchError:
                    continue
                for line in batch.lines:
                    if not isinstance(line, Sample) or line.tag not in wanted or not is_usable(line):
                        continue
                    # Each gateway of the store has tags of these names: a flow sees those of its own.
                    if line.gateway in {None, store.consumer}:
                        wanted[line.tag].add(_placed(line, batch))
        return position

    async def _saved(self, query: LatestValue) -> Any:
        """Return the last value of a tag whose samples have left the stream; None without one."""
        text = await tags.load_last_of(self._stores[0], query.tag)
        try:
            line = parse_line(text) if text else None
        except LineError:
            return None
        return line.value if isinstance(line, Sample) and is_usable(line) and line.at <= query.until_ms else None


class TagWriter:
    """Appends samples of derived tags to the stream, where rules and flows find them."""

    def __init__(self, store: Store, clock: Clock, stream_length: int) -> None:
        self._store = store
        self._clock = clock
        self._stream_length = stream_length

    async def write(self, action: WriteTag, _action_id: str) -> dict[str, Any]:
        """Append a sample and return its time.

        Raises NodeError for a value that no tag can have, OutcomeUnknownError when the commit was not confirmed.
        """
        now = self._clock()
        sample = Sample(now, action.tag, action.value)
        if fault := fault_of(sample):
            raise NodeError(f"tag {action.tag[:200]!r} cannot be written: {fault}")
        batch = encode_batch(Batch("", 0, now, (sample,)))
        try:
            await self._store.commit(telemetry.append(self._store.keys, batch, self._stream_length))
        except Unavailable as error:
            raise OutcomeUnknownError(error.message) from None
        return {"tag": action.tag, "at": now}


def _at(sample: Sample) -> int:
    return sample.at


def _placed(sample: Sample, batch: Batch) -> Sample:
    """Return a sample at the instant at which it counts."""
    placed = placed_line(sample, batch)
    return placed if isinstance(placed, Sample) else sample
