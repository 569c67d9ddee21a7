"""Writes history: buffers samples, and appends them in large chunks for little wear of flash."""

import asyncio
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Final

import structlog
from msgspec import Struct

from edge.features.telemetry.history.day_files import append_day, by_day, in_chunks, recover, remove_oldest
from edge.foundation.rate_limit import LogThrottle
from edge.ports.sample_lines import Sample

logger = structlog.get_logger(__name__)

_RETRY_S: Final = 10.0
"""Seconds until a disk that refused is tried again: each try encodes a whole chunk."""


class HistoryLimits(Struct, frozen=True):
    """What is kept and how it is written: days, bytes, seconds between chunks, samples of a chunk and of the buffer."""

    days: int
    max_bytes: int = 1 << 30
    interval_s: float = 300.0
    chunk: int = 10_000
    buffer: int = 50_000


class HistoryWriter:
    """Appends samples to the files of a directory; samples that cannot be written stay in the bounded buffer."""

    def __init__(self, directory: Path, limits: HistoryLimits) -> None:
        self.written = 0
        """Samples that are in files."""
        self.revision = 0
        """Odd while samples are moved to the files: they are not in the buffer, and maybe not in a file yet."""
        self.dropped = 0
        """Samples that were dropped because the buffer was full."""
        self.bytes = 0
        """Bytes of all files after the last chunk."""
        self.directory = directory
        """Where the files are."""
        self._limits = limits
        self._buffer: deque[Sample] = deque(maxlen=limits.buffer)
        self._is_full = asyncio.Event()
        self._faults = LogThrottle(logger)

    def append(self, samples: Iterable[Sample]) -> None:
        """Buffer samples; late ones are among them."""
        for sample in samples:
            if len(self._buffer) == self._limits.buffer:
                self.dropped += 1
            self._buffer.append(sample)
        if len(self._buffer) >= self._limits.chunk:
            self._is_full.set()

    def buffered(self, tag: str, start: int, end: int) -> list[Sample]:
        """Return the samples of a tag that are not in files yet, from `start` to before `end`, in order of time."""
        found = (sample for sample in self._buffer if sample.tag == tag and start <= sample.at < end)
        return sorted(found, key=lambda sample: sample.at)

    async def run(self) -> None:
        """Write chunks until cancelled; write the rest at the end."""
        # Not in a thread: it is short, and a cancelled thread would still change the file.
        self._recover()
        try:
            while True:
                try:
                    async with asyncio.timeout(self._limits.interval_s):
                        await self._is_full.wait()
                except TimeoutError:
                    pass
                self._is_full.clear()
                if await self._write(self._take()):
                    await asyncio.sleep(min(self._limits.interval_s, _RETRY_S))
                if len(self._buffer) >= self._limits.chunk:
                    self._is_full.set()
        finally:
            while samples := self._take():
                if self._append(samples):
                    break

    def _take(self) -> list[Sample]:
        return [self._buffer.popleft() for _ in range(min(len(self._buffer), self._limits.chunk))]

    async def _write(self, samples: list[Sample]) -> list[Sample]:
        """Append samples in a thread; put those back that the disk did not take, and return them."""
        if not samples:
            return []
        self.revision += 1
        # A task without a group: the thread cannot be stopped, and the chunk must be known as written or not.
        writing = asyncio.ensure_future(asyncio.to_thread(self._append, samples))
        try:
            await asyncio.shield(writing)
        finally:
            try:
                self._return(await writing)
            finally:
                self.revision += 1
        return writing.result()

    def _return(self, samples: list[Sample]) -> None:
        """Put samples back at the front of the buffer, the newest ones where it has too little room."""
        room = self._limits.buffer - len(self._buffer)
        kept = samples[-room:] if room > 0 else []
        self.dropped += len(samples) - len(kept)
        self._buffer.extendleft(reversed(kept))

    def _append(self, samples: list[Sample]) -> list[Sample]:
        """Append samples and remove the oldest files; return the samples that the disk did not take."""
        chunks = deque((day, chunk) for day, of_day in by_day(samples).items() for chunk in in_chunks(of_day))
        try:
            while chunks:
                append_day(self.directory, *chunks[0], self._limits.max_bytes)
                self.written += len(chunks.popleft()[1])
            self.bytes = remove_oldest(self.directory, samples[-1].at, self._limits.days, self._limits.max_bytes)
        except OSError as error:
            advice = f"Check the space and the owner of {self.directory}."
            self._faults.warning("history not written", "", reason=str(error), advice=advice)
        return [sample for _, chunk in chunks for sample in chunk]

    def _recover(self) -> None:
        try:
            recover(self.directory)
        except OSError as error:
            self._faults.warning("history not repaired", "", reason=str(error), advice="Check the disk.")
