"""Reads the samples of tags for flows, live or recorded; writes derived tags, and raises alarms.

Samples that flows read are recorded.
"""

import asyncio
import contextlib
import math
from bisect import bisect_right, insort
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec
from msgspec import Struct, field

from edge.app.feature_ports import RecordedTags, Telemetry
from edge.app.parts import GatewayParts
from edge.features.flows.attempt import OutcomeUnknownError
from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import LatestValue, RaiseAlarm, SampleWindow, WriteTag
from edge.features.flows.nodes.tag_latest import TagLatestConfig
from edge.features.flows.nodes.tag_window import TagWindowConfig
from edge.features.flows.nodes.tag_write import TagWriteConfig
from edge.features.flows.plan import Plan, Plans
from edge.features.flows.ports.table import Handler
from edge.features.flows.state import FlowState
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock, now_ms
from edge.foundation.text import Text
from edge.ports.alarm import Alarm, AlarmCause, alarm_id
from edge.ports.batch import Batch, BatchError, decode_batch, encode_batch, fault_of, placed_line
from edge.ports.sample_lines import LineError, Quality, Sample, parse_line
from edge.store import stream_of_samples as tags
from edge.store import stream_of_samples as telemetry
from edge.store.background import restart_on_outage
from edge.store.client import Store


class SampleHistory(Struct, frozen=True):
    """The samples that are not bad, by tag, in order of time."""

    samples: dict[str, list[Sample]]

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> "SampleHistory":
        """Return the history of samples that come in order of time; NaN and infinity are unknown and left out."""
        found: dict[str, list[Sample]] = {}
        for sample in samples:
            if is_usable(sample):
                found.setdefault(sample.tag, []).append(sample)
        return cls(found)

    def answer(self, query: LatestValue | SampleWindow) -> Any:
        """Return the answer to a query."""
        samples = self.samples.get(query.tag, [])
        end = bisect_right(samples, query.until_ms, key=_at)
        match query:
            case LatestValue():
                return samples[end - 1].value if end else None
            case SampleWindow(after_ms=after_ms, with_time=with_time):
                window = samples[bisect_right(samples, after_ms, key=_at) : end]
                return [_as_json(sample) for sample in window] if with_time else [sample.value for sample in window]


def _at(sample: Sample) -> int:
    return sample.at


def is_usable(sample: Sample) -> bool:
    """Return whether a sample is not bad and its value is known: neither NaN nor infinity."""
    value = sample.value
    return sample.quality is not Quality.BAD and (not isinstance(value, float) or math.isfinite(value))


def _as_json(sample: Sample) -> dict[str, Any]:
    return {"at": sample.at, "value": sample.value, "quality": sample.quality.value}


LARGEST_VALUE: Final = 4_096
"""In bytes of JSON; a larger value is left out of the alarm."""


class AlarmRaiser:
    """Raises the alarm of an id for a flow."""

    def __init__(self, raise_alarm: Callable[[AlarmCause], Awaitable[Alarm | None]]) -> None:
        self._raise = raise_alarm

    async def raise_alarm(self, action: RaiseAlarm, _action_id: str) -> dict[str, Any]:
        """Raise an alarm and return its id and count; raises OutcomeUnknownError when the commit was not confirmed."""
        value = action.value if len(msgspec.json.encode(action.value)) <= LARGEST_VALUE else None
        try:
            raised = await self._raise(
                AlarmCause(action.alarm, action.flow, action.severity, message=action.message, value=value)
            )
        except Unavailable as error:
            raise OutcomeUnknownError(error.message) from None
        return {"alarm": alarm_id(action.alarm, action.flow), "count": raised.count if raised else 0}


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
        before, kept = self._kept.get(tag), _Kept(keep_ms, self._limits.samples_of_tag)
        for store in self._stores:
            if self._kept:
                await self._scan(store, "", {tag: kept}, self._positions.get(store) or _NOWHERE)
            else:
                self._positions[store] = await self._scan(store, "", {tag: kept})
        if before and (not kept.samples or before.samples[0].at < kept.samples[0].at):
            kept.samples = before.samples
        self._kept[tag] = kept
        if len(self._kept) > self._limits.tags:
            self._kept.popitem(last=False)
        return kept

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
            raise NodeError(Text.of("tag {tag!r} cannot be written: {fault}", tag=action.tag[:200], fault=fault))
        batch = encode_batch(Batch("", 0, now, (sample,)))
        try:
            await self._store.commit(telemetry.append(self._store.keys, batch, self._stream_length))
        except Unavailable as error:
            raise OutcomeUnknownError(error.message) from None
        return {"tag": action.tag, "at": now}


def _placed(sample: Sample, batch: Batch) -> Sample:
    """Return a sample at the instant at which it counts."""
    placed = placed_line(sample, batch)
    return placed if isinstance(placed, Sample) else sample


def used_tags(plan: Plan) -> frozenset[str]:
    """Return the tags of the nodes of a plan."""
    configs = (node.config for node in plan.nodes.values())
    return frozenset(
        config.tag for config in configs if isinstance(config, TagLatestConfig | TagWindowConfig | TagWriteConfig)
    )


async def tag_handlers(
    stack: contextlib.AsyncExitStack, core: GatewayParts, telemetry: Telemetry
) -> dict[type, Handler]:
    """Return the handlers of tags and alarms; the samples of windows are kept in memory from now on.

    Samples of sources are in the volatile store where there is one, job results always in the other.
    """
    volatile = telemetry.volatile
    reader = TagReader([core.store, volatile] if volatile else [core.store])
    await core.keep_running(stack, "tag windows", partial(restart_on_outage, "tag windows", reader.follow))
    writer = TagWriter(volatile or core.store, now_ms, telemetry.stream_length)
    return {
        LatestValue: reader.read,
        SampleWindow: reader.read,
        WriteTag: writer.write,
        RaiseAlarm: AlarmRaiser(telemetry.raise_alarm).raise_alarm,
    }


async def record_tags(state: FlowState, plans: Plans, recorded: RecordedTags) -> None:
    """Keep the tags that flows use recorded, until cancelled."""
    await restart_on_outage("tags of flows", partial(_follow, state, plans, recorded))


async def _follow(state: FlowState, plans: Plans, recorded: RecordedTags) -> None:
    position, changed = await state.announced("")
    recorded.used_tags = await _load(state, plans)
    while True:
        position, changed = await state.announced(position)
        if changed:
            recorded.used_tags = await _load(state, plans)


async def _load(state: FlowState, plans: Plans) -> frozenset[str]:
    found: set[str] = set()
    for flow_id in await state.flow_ids():
        flow = await state.load_flow(flow_id)
        plan = plans.of(flow.document) if flow else None
        if isinstance(plan, Plan):
            found |= used_tags(plan)
    return frozenset(found)
