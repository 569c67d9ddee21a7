"""The bounded queue between the sources of samples and the stream."""

import asyncio
import contextlib
import functools
import uuid
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from typing import Final

import structlog
from msgspec import Struct

from edge.foundation.instant import Clock
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.ticks import Slices
from edge.ports.batch import BATCH_SIZE, Batch, at_arrival, doubtful, encode_batch, fault_of, is_name, split_lines
from edge.ports.sample_lines import Line, Sample
from edge.ports.sample_value import type_name
from edge.store import stream_of_samples as telemetry
from edge.store.background import RETRY_INTERVAL_S, retry_while_unavailable
from edge.store.client import Store
from edge.store.commit import NOTHING, join, written_size
from edge.store.connection import OutOfMemory

_Name = tuple[type, str]
"""Samples and occurrences of one name are counted apart."""


class _Counts:
    """The numbers of waiting lines by their names, and the names by how many of their lines wait."""

    def __init__(self) -> None:
        self._numbers: dict[_Name, deque[int]] = {}
        self._names: dict[int, dict[_Name, None]] = {}
        self._highest = 0

    def __bool__(self) -> bool:
        """Return whether a line waits."""
        return bool(self._numbers)

    def add(self, name: _Name, number: int) -> None:
        """Count a line."""
        numbers = self._numbers.get(name)
        if numbers is None:
            numbers = self._numbers[name] = deque()
        numbers.append(number)
        self._move(name, len(numbers) - 1, len(numbers))
        self._highest = max(self._highest, len(numbers))

    def remove_oldest(self, name: _Name) -> int:
        """Stop counting the oldest line of a name; return its number."""
        numbers = self._numbers[name]
        oldest = numbers.popleft()
        self._move(name, len(numbers) + 1, len(numbers))
        if not numbers:
            del self._numbers[name]
        if self._highest and self._highest not in self._names:
            self._highest -= 1
        return oldest

    def busiest(self) -> _Name:
        """Return the name of which most lines wait; of several the one that has had so many for the longest time."""
        return next(iter(self._names[self._highest]))

    def _move(self, name: _Name, before: int, after: int) -> None:
        if before:
            names = self._names[before]
            del names[name]
            if not names:
                del self._names[before]
        if after:
            self._names.setdefault(after, {})[name] = None


class LineQueue:
    """Lines in the order of arrival, at most `size`; adding, taking and dropping take the same time at any length."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._lines: OrderedDict[int, tuple[Line, _Counts]] = OrderedDict()
        self._added = 0
        self._others, self._of_alarms, self._occurrences = _Counts(), _Counts(), _Counts()
        self._drop_order: Final = (self._others, self._of_alarms, self._occurrences)

    def __len__(self) -> int:
        """Return the number of waiting lines."""
        return len(self._lines)

    def add(self, line: Line, *, raises_alarms: bool) -> bool:
        """Add a line; return whether another one was dropped for it. `raises_alarms`: a rule takes its tag."""
        is_dropped = len(self._lines) >= self._size
        if is_dropped:
            counts = next(tags for tags in self._drop_order if tags)
            del self._lines[counts.remove_oldest(counts.busiest())]
        counts = self._of_alarms if raises_alarms else self._others
        if not isinstance(line, Sample):
            counts = self._occurrences
        counts.add(_name(line), self._added)
        self._lines[self._added] = line, counts
        self._added += 1
        return is_dropped

    def take(self, most: int) -> tuple[Line, ...]:
        """Remove and return the oldest lines."""
        taken = []
        for _ in range(min(most, len(self._lines))):
            _, (line, counts) = self._lines.popitem(last=False)
            counts.remove_oldest(_name(line))
            taken.append(line)
        return tuple(taken)

    @property
    def settled(self) -> int:
        """Return of how many lines, in the order of arrival, none waits any longer."""
        return next(iter(self._lines), self._added)


def _name(line: Line) -> _Name:
    return (Sample, line.tag) if isinstance(line, Sample) else (type(line), line.name)


logger = structlog.get_logger(__name__)


class QueueLimits(Struct, frozen=True):
    """How many lines wait, how many make a batch and after which time, and how many batches one commit has.

    A line after a silence of `interval_s` waits for `gather_s` only, for those that come with it. A backlog looks each
    `look_s` at the entries that the rules have not read: beyond a tenth of the stream lines wait here, where the queue
    decides which ones to drop.
    """

    size: int = 10_000
    batch_size: int = BATCH_SIZE
    most_batches: int = 10
    interval_s: float = 0.1
    gather_s: float = 0.005
    look_s: float = 0.05
    stream_length: int = 1_000
    retry_s: float = RETRY_INTERVAL_S


_MAX_TYPES: Final = 10_000
_IDLE_MS: Final = 3_000
"""Time without a read after which the rules are not at work: half of the stream waits for them."""


def _wants_all(_: Line) -> bool:
    return True


def _raises_alarms(_: str) -> bool:
    return True


def _as_it_is(sample: Sample) -> Sample:
    return sample


class SampleQueue:
    """A queue of lines from all sources, which it appends to the stream in batches; it drops as LineQueue does."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        limits: QueueLimits | None = None,
        wants: Callable[[Line], bool] = _wants_all,
        judge: Callable[[Sample], Sample | str] = _as_it_is,
        task: str = "samples",
        raises_alarms: Callable[[str], bool] = _raises_alarms,
        slices: Slices | None = None,
    ) -> None:
        """Queue the lines that `wants` accepts, as `judge` returns them; count and log those that it refuses.

        `task` names the queue in the log while its store is unavailable. Tags that `raises_alarms` are dropped last.
        """
        self.dropped = 0
        """Lines that were dropped because the queue was full, and messages that did not become lines."""
        self.refused = 0
        """Lines that cannot be taken."""
        self.refused_of: Counter[str] = Counter()
        """Values that were not samples, by source."""
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
        self._types: dict[str, str] = {}
        """The type of the last value of each tag."""
        self._raises_alarms = raises_alarms
        self._slices = slices or Slices()
        self._lines = LineQueue(self._limits.size)
        self._looked_at = 0.0
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
        fault = str(fault_of(line) or "")
        if fault and not (isinstance(line, Sample) and is_name(line.tag)):
            self._refuse(line, fault)
            return
        if not self._wants(line):
            if fault:
                self._refuse(line, fault)
            return
        now = self._clock()
        if isinstance(line, Sample):
            judged = fault or self._judge(line)
            if isinstance(judged, str):
                self._refuse(line, judged)
                judged = doubtful(line.tag, now)
            line = judged
            self._note_type(line)
        line = at_arrival(line, now)
        if self._lines.add(line, raises_alarms=isinstance(line, Sample) and self._raises_alarms(line.tag)):
            self.dropped += 1
            self._faults.warning("sample dropped", "", reason="queue full", dropped=self.dropped)
        self.received += 1
        self._awake.set()
        if len(self._lines) >= self._limits.batch_size:
            self._full.set()

    async def pause(self) -> None:
        """Pause a source that has many samples, so that the steps of jobs come in between."""
        await self._slices.pause()

    def note_drop(self) -> None:
        """Count a message that was dropped before it became samples."""
        self.dropped += 1

    def refuse(self, source: str, count: int) -> None:
        """Count values of a source that are not samples."""
        self.refused_of[source] += count

    def doubt(self, tag: str) -> None:
        """Mark the value of a tag as uncertain: its source has sent one that is not a sample."""
        if is_name(tag):
            self.put(doubtful(tag, self._clock()))

    def _refuse(self, line: Line, reason: str) -> None:
        name = line.tag if isinstance(line, Sample) else line.name
        self.refused += 1
        advice = "Correct its source, or the definition of its tag, or take it from the settings."
        self._faults.warning("sample refused", name[:200], name=name[:200], reason=reason, advice=advice)

    def _note_type(self, sample: Sample) -> None:
        """Log a tag whose values change their type: rules of numbers ignore texts."""
        kind = type_name(sample.value)
        before = self._types.get(sample.tag)
        if kind is None or kind == before:
            return
        if before is not None:
            advice = "Correct its source, or set its encoding; rules take values of their own type only."
            self._faults.warning(
                "sample type changed", sample.tag, name=sample.tag, before=before, now=kind, advice=advice
            )
        if before is not None or len(self._types) < _MAX_TYPES:
            self._types[sample.tag] = kind

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
            else:
                await retry_while_unavailable(self._task, self._wait_for_rules, limits.retry_s)
            batches, taken_at = self._take(), loop.time()
            await retry_while_unavailable(self._task, functools.partial(self._append, batches), limits.retry_s)
            self.appended += sum(len(batch.lines) for batch in batches)
            self._settled = self._lines.settled
            self._progress.set()
            self._progress.clear()

    async def _wait_for_rules(self) -> None:
        """Wait while the rules have many entries to read. Raises Unavailable."""
        limits, loop = self._limits, asyncio.get_running_loop()
        if not self.appended or loop.time() - self._looked_at < limits.look_s:
            return
        while True:
            unread = await telemetry.read_unread(self._store)
            self._looked_at = loop.time()
            if unread.entries <= limits.stream_length // (2 if unread.idle_ms > _IDLE_MS else 10):
                return
            await asyncio.sleep(limits.look_s)

    def _take(self) -> list[Batch]:
        limits = self._limits
        full = min(len(self._lines) // limits.batch_size, limits.most_batches)
        lines = self._lines.take(limits.batch_size * max(1, full))
        if not self._lines:
            self._awake.clear()
        if len(self._lines) < limits.batch_size:
            self._full.clear()
        batches = list(split_lines(self._producer, self._number + 1, self._clock(), lines, limits.batch_size))
        self._number += len(batches)
        return batches

    async def _append(self, batches: Sequence[Batch]) -> None:
        # After a lost reply the batches are appended again with the same numbers: the processor recognises them.
        try:
            commit = NOTHING
            for batch in batches:
                entry = telemetry.append(self._store.keys, encode_batch(batch), self._limits.stream_length)
                commit = join((commit, entry))
                await self._slices.pause()
            await self._store.commit(commit)
            self.written_bytes += written_size(commit)
        except OutOfMemory:
            # Only an append trims the stream, and a full server refuses it: without this no sample would pass again.
            removed = await telemetry.remove_older_half(self._store)
            logger.warning("older samples removed", entries=removed, reason="the Redis of the samples is full")
            raise
