"""The bounded queue between the sources of samples and the stream."""

import asyncio
import contextlib
import functools
import uuid
from collections import Counter, deque
from collections.abc import Callable

import structlog
from msgspec import Struct

from edge.instant import Clock
from edge.links.log_throttle import LogThrottle
from edge.rules.sample_lines import Line, Sample
from edge.store import telemetry
from edge.store.client import Store
from edge.store.commit import written_size
from edge.store.errors import OutOfMemory
from edge.store.retry import RETRY_INTERVAL_S, retry_while_unavailable
from edge.telemetry.batch import Batch, encode_batch, fault_of

logger = structlog.get_logger(__name__)


class QueueLimits(Struct, frozen=True):
    """How many lines wait, how many make a batch and after which time, and how many leave in a second at most.

    A line after a silence of `interval_s` waits for `gather_s` only, for those that come with it.
    """

    size: int = 10_000
    batch_size: int = 100
    interval_s: float = 0.1
    gather_s: float = 0.005
    per_second: int = 2_000
    stream_length: int = 1_000
    retry_s: float = RETRY_INTERVAL_S


def _wants_all(_: Line) -> bool:
    return True


def _as_it_is(sample: Sample) -> Sample:
    return sample


class SampleQueue:
    """Takes lines from all sources and appends them to the stream in batches; on overflow the oldest are dropped."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: QueueLimits | None = None,
        wants: Callable[[Line], bool] = _wants_all,
        judge: Callable[[Sample], Sample | str] = _as_it_is,
        task: str = "samples",
    ) -> None:
        """Queue the lines that `wants` accepts, as `judge` returns them; count and log those that it refuses.

        `task` names the queue in the log while its store is unavailable.
        """
        self.dropped = 0
        """Lines that were dropped because the queue was full."""
        self.refused = 0
        """Lines that cannot be taken."""
        self.refused_of: Counter[str] = Counter()
        """Values that were no samples, by source."""
        self.appended = 0
        """Lines that are in the stream."""
        self.written_bytes = 0
        """Bytes that these lines took in the append-only file, about, if their store has one."""
        self.received = 0
        """Lines that were queued; those that no rule uses are not."""
        self._store = store
        self._clock = clock
        self._limits = limits or QueueLimits()
        self._wants = wants
        self._judge = judge
        self._task = task
        self._lines: deque[Line] = deque()
        self._awake = asyncio.Event()
        self._settled = 0
        self._progress = asyncio.Event()
        self._full = asyncio.Event()
        self._producer = uuid.uuid4().hex[:12]
        self._number = 0
        self._faults = LogThrottle(logger)

    @property
    def waiting(self) -> int:
        """Return the number of lines in the queue."""
        return len(self._lines)

    async def settle(self, received: int) -> None:
        """Wait until the first `received` lines are in the stream or were dropped."""
        while self._settled < received:
            await self._progress.wait()

    def put(self, line: Line) -> None:
        """Queue a line that is wanted; one that cannot be taken is logged and counted."""
        if fault := fault_of(line):
            self._refuse(line, fault)
            return
        if not self._wants(line):
            return
        if isinstance(line, Sample):
            judged = self._judge(line)
            if isinstance(judged, str):
                self._refuse(line, judged)
                return
            line = judged
        if len(self._lines) >= self._limits.size:
            self._lines.popleft()
            self.dropped += 1
            self._faults.warning("sample dropped", "", reason="queue full", dropped=self.dropped)
        self._lines.append(line)
        self.received += 1
        self._awake.set()
        if len(self._lines) >= self._limits.batch_size:
            self._full.set()

    def refuse(self, source: str, count: int) -> None:
        """Count values of a source that are no samples."""
        self.refused_of[source] += count

    def _refuse(self, line: Line, reason: str) -> None:
        name = line.tag if isinstance(line, Sample) else line.name
        self.refused += 1
        advice = "Correct its source, or the definition of its tag, or take it from the settings."
        self._faults.warning("sample refused", name[:200], name=name[:200], reason=reason, advice=advice)

    async def run(self) -> None:
        """Append the queued lines in batches until cancelled; an unavailable store is waited for."""
        limits, loop = self._limits, asyncio.get_running_loop()
        taken_at = -limits.interval_s
        while True:
            await self._awake.wait()
            if len(self._lines) < limits.batch_size:
                due = max(taken_at + limits.interval_s, loop.time() + limits.gather_s)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        await self._full.wait()
            batch, taken_at = self._take(), loop.time()
            await retry_while_unavailable(self._task, functools.partial(self._append, batch), limits.retry_s)
            self.appended += len(batch.lines)
            # Lines that were dropped meanwhile are younger than the batch, and older than those in the queue.
            self._settled = self.received - len(self._lines)
            self._progress.set()
            self._progress.clear()
            if len(self._lines) >= limits.batch_size:
                # Jobs come first: a flood of samples waits here, and then is dropped.
                await asyncio.sleep(len(batch.lines) / limits.per_second)

    def _take(self) -> Batch:
        lines = tuple(self._lines.popleft() for _ in range(min(len(self._lines), self._limits.batch_size)))
        if not self._lines:
            self._awake.clear()
        if len(self._lines) < self._limits.batch_size:
            self._full.clear()
        self._number += 1
        return Batch(self._producer, self._number, self._clock(), lines)

    async def _append(self, batch: Batch) -> None:
        # After a lost reply the batch is appended again with the same number: the processor recognises it.
        try:
            commit = telemetry.append(self._store.keys, encode_batch(batch), self._limits.stream_length)
            await self._store.commit(commit)
            self.written_bytes += written_size(commit)
        except OutOfMemory:
            # Only an append trims the stream, and a full server refuses it: without this no sample would pass again.
            removed = await telemetry.remove_older_half(self._store)
            logger.warning("older samples removed", entries=removed, reason="the Redis of the samples is full")
            raise
