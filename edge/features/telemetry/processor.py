"""Evaluates the batches of the stream: decides with the rules, commits once, acknowledges in that commit."""

import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, TypeAlias

import structlog
from msgspec import Struct, field
from msgspec.structs import replace

from edge.features.telemetry.alarm_decision import FLOOD_ALARMS, FoundAlarm
from edge.features.telemetry.alarm_keeper import AlarmKeeper
from edge.features.telemetry.latest_tags import LatestTags, NewestSamples
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rule_memory import RuleMemory, load_memory
from edge.features.telemetry.rules.evaluator import OrderedFinding, Renamed
from edge.features.telemetry.rules.subject_state import Finding, FindingEvent
from edge.features.telemetry.volatile_intake import TakenEntry, VolatileIntake, take_either
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock, Latency
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.task_group import background_task
from edge.foundation.ticks import Slices
from edge.ports.batch import Batch, BatchError, decode_batch, moved_to, placed_line
from edge.ports.sample_lines import Line, Occurrence, Sample
from edge.store import stream_of_samples as telemetry
from edge.store.background import RETRY_INTERVAL_S, restart_on_outage
from edge.store.client import Store, block_ms
from edge.store.commit import Commit, join
from edge.store.dead_letters import LetterKind

logger = structlog.get_logger(__name__)

ALARM_BUCKETS_S: Final = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 5.0, 60.0)
DURABLE_INTERVAL_MS: Final = 1_000
VOLATILE_INTERVAL_MS: Final = 5_000
"""Longest time until a decision about samples is committed; one that changes an alarm is committed at once.

The entries of that time are acknowledged together: at few samples a second each commit costs more than its samples.
"""

_Stats: TypeAlias = Counter[str]


class _OpenBatch(Struct, frozen=True):
    """A batch whose decision is not committed, with its samples as they were evaluated."""

    taken: TakenEntry
    batch: Batch
    faults: int
    samples: list[Sample] = field(default_factory=list)


class RuleProcessor:
    """The only consumer at work: evaluates entries in order, and timers when the stream is drained."""

    def __init__(
        self,
        store: Store,
        rules: Sequence[Rule],
        clock: Clock,
        retry_s: float = RETRY_INTERVAL_S,
        volatile: Store | None = None,
        durable_interval_ms: int = DURABLE_INTERVAL_MS,
        flood_limit: int = FLOOD_ALARMS,
        slices: Slices | None = None,
    ) -> None:
        """Evaluate the stream of a store, and that of a volatile store where samples have one of their own."""
        self._slices = slices or Slices()
        self.tags = LatestTags(store)
        self.alarms = AlarmKeeper(store, clock, flood_limit)
        self.alarm_latency = Latency(ALARM_BUCKETS_S)
        """Time from the arrival of a batch to the commit of the alarms that it changed."""
        self.evaluated = 0
        """Lines whose evaluation was committed since the start."""
        self.written_bytes = 0
        """Bytes that this wrote to the append-only file of the durable store, without the samples, about."""
        self.sample_listeners: list[Callable[[Sequence[Sample]], None]] = []
        """Called with the samples of each batch after its commit."""
        self._store = store
        self._rules = rules
        self._clock = clock
        self._retry_s = retry_s
        self._has_begun = False
        self._memory: RuleMemory | None = None
        self._faults = LogThrottle(logger)
        self._volatile = volatile
        self._durable_interval_ms = durable_interval_ms
        self._intake: VolatileIntake | None = None
        self._open: list[_OpenBatch] = []
        """Batches that were evaluated and wait for a common commit."""
        self._found_open: list[FoundAlarm] = []
        self._newest = NewestSamples()
        self._renamed_open: list[Renamed] = []
        """Subjects of open batches that have another name now."""
        self._decided = 0
        """Number of open batches that the states in memory contain."""
        self._committed_at = 0
        self._claimed_at = clock()

    @property
    def rules(self) -> Sequence[Rule]:
        """Return the rules, the built-in ones included."""
        return self._rules

    def use_rules(self, rules: Sequence[Rule]) -> None:
        """Evaluate other rules from the next entry on; states of rules that are the same continue."""
        self._rules = rules
        self._memory = None

    @property
    def running_jobs(self) -> tuple[str, ...]:
        """Return the jobs that run, by the occurrences so far."""
        return self._memory.evaluator.jobs.ids if self._memory else ()

    async def run(self) -> None:
        """Evaluate until cancelled; an unavailable store is waited for."""
        await restart_on_outage("telemetry", self._follow, self._retry_s)

    async def _follow(self) -> None:
        # After an outage the outcome of the commit is unknown: the stores deliver unacknowledged entries again.
        self._memory = None
        self._open = []
        await telemetry.create_group(self._store)
        await telemetry.claim_from_others(self._store)
        await self._load()
        await self._take_pending(suspects=not self._has_begun)
        suspects, self._has_begun = not self._has_begun, True
        async with self._entries(suspects=suspects) as taken:
            async for entries in taken:
                for entry in entries:
                    await self._process(entry)
                if not entries:
                    await self._pass_time()
                await self._claim_if_due()
                await self._commit_if_due()
                await self.alarms.tend(lambda: self._standing(self._memory) if self._memory else [])
                await self.tags.save_if_due(self._clock())

    async def _claim_if_due(self) -> None:
        """Evaluate what another consumer took and has not acknowledged for a minute, such as a foreign program."""
        if 0 <= self._clock() - self._claimed_at < telemetry.IDLE_MS:
            return
        self._claimed_at = self._clock()
        for store in filter(None, (self._store, self._volatile)):
            for claimed in await self._claim_idle(store):
                logger.warning("entry claimed", entry=claimed.entry.entry_id, consumer=claimed.consumer)
                await self._process(TakenEntry(claimed.entry, store, claimed.deliveries))

    async def _claim_idle(self, store: Store) -> Sequence[telemetry.ClaimedEntry]:
        """Claim the entries of a stream that are idle; none while the volatile store is unavailable."""
        try:
            return await telemetry.claim_idle(store)
        except Unavailable:
            # The intake of this store reports its outage. An outage of the other one begins the evaluation again.
            if store is self._volatile:
                return ()
            raise

    @contextlib.asynccontextmanager
    async def _entries(self, *, suspects: bool) -> AsyncIterator[AsyncIterator[list[TakenEntry]]]:
        """Provide new entries, none after the time until the next timer. They raise Unavailable."""
        if self._volatile is None:
            yield self._durable_entries()
            return
        intake = self._intake = VolatileIntake(self._volatile, suspects=suspects)
        async with (
            background_task(intake.run(self._retry_s), "volatile samples"),
            contextlib.aclosing(take_either(intake, self._store, self._block_ms)) as taken,
        ):
            yield taken

    async def _durable_entries(self) -> AsyncIterator[list[TakenEntry]]:
        while True:
            yield [TakenEntry(item, self._store) for item in await telemetry.take_new(self._store, self._block_ms())]

    async def _load(self) -> RuleMemory:
        rules = self._rules
        self._found_open, self._renamed_open, self._decided = [], [], 0
        self._newest.rollback()
        self._memory = await load_memory(self._store, rules, self._clock())
        if rules is not self._rules:
            return await self._load()
        await self.alarms.load(self._standing(self._memory), self._memory.guard(self._store.keys))
        return self._memory

    async def _take_pending(self, *, suspects: bool) -> None:
        """Evaluate what was taken and not acknowledged.

        After a restart the first entry may have ended the process before: each delivery of it is counted.
        """
        after = "0"
        while pending := await telemetry.read_pending(self._store, after):
            for entry in pending:
                after = entry.entry_id
                deliveries = await telemetry.count_delivery(self._store, entry.entry_id) if suspects else 0
                await self._process(TakenEntry(entry, self._store, deliveries))

    async def _process(self, taken: TakenEntry) -> None:
        """Evaluate an entry; write a dead letter when it cannot be evaluated."""
        entry = taken.entry
        if taken.deliveries > telemetry.MAX_DELIVERIES:
            await self._write_dead_letter(taken, f"it was delivered {taken.deliveries} times")
            return
        while True:
            try:
                if not entry.fields:
                    # It was trimmed from the stream before it was evaluated.
                    await self._store.commit(join((self.alarms.count({"trimmed": 1}), self._acknowledge([taken]))))
                    await self._release([taken])
                    return
                batch, faults = decode_batch(entry.fields)
                if not batch.lines:
                    self.alarms.look_soon()
                for fault in faults:
                    self._faults.warning("sample refused", batch.producer, reason=fault, entry=entry.entry_id)
                await self._evaluate(_OpenBatch(taken, batch, len(faults)))
            except Unavailable:
                raise
            except BatchError as error:
                await self._write_dead_letter(taken, str(error))
            except Exception as error:
                # A defect in one batch must not stop the others; its states are half done, the store has whole ones.
                logger.exception("batch cannot be evaluated", entry=entry.entry_id)
                self._memory = None
                self._open = [open_block for open_block in self._open if open_block.taken is not taken]
                deliveries = await telemetry.count_delivery(taken.source, entry.entry_id)
                if deliveries <= telemetry.MAX_DELIVERIES:
                    continue
                await self._write_dead_letter(taken, f"it met a defect of this software: {error!r}")
            return

    async def _evaluate(self, batch: _OpenBatch) -> None:
        """Decide about a batch and commit, unless it may wait for a common commit."""
        self._open.append(batch)
        await self._decide()
        # An entry that may have ended the process before must not make others pending again.
        if self._found_open or self._renamed_open or batch.taken.deliveries:
            await self._commit_open()
        await self._commit_if_due()

    async def _decide(self) -> RuleMemory:
        """Evaluate the open batches that the states do not contain; return the states."""
        memory = self._memory or await self._load()
        for open_batch in self._open[self._decided :]:
            batch, facts = open_batch.batch, memory.facts
            if not batch.producer or facts.producers.get(batch.producer, 0) < batch.number:
                self._found_open += await self._feed(memory, open_batch)
            memory.facts = memory.facts.with_batch(batch.producer, batch.number)
            self._decided += 1
        renamed = memory.evaluator.take_renamed()
        memory.forget([(item.rule, item.before) for item in renamed])
        self._renamed_open += renamed
        return memory

    async def _commit_open(self) -> None:
        """Commit the open batches; when another processor was faster, decide about all of them again."""
        while True:
            memory = await self._decide()
            found, renamed = self._found_open, self._renamed_open
            taken = [open_block.taken for open_block in self._open]
            lines = sum(len(open_block.batch.lines) for open_block in self._open)
            stats: _Stats = Counter({"processed": lines})
            if faults := sum(open_block.faults for open_block in self._open):
                stats["refused"] = faults
            facts = replace(memory.facts, jobs=memory.evaluator.jobs)
            written = join((memory.plan_commit(self._store.keys, facts), self._acknowledge(taken)))
            if await self._commit(written, found, stats, renamed):
                break
            self._memory = None
        if found:
            self.alarm_latency.record(max(0, self._clock() - self._open[-1].batch.arrived_at) / 1000)
        self.evaluated += lines
        deliveries = sum(taken_entry.source is self._store for taken_entry in taken)
        self.written_bytes += deliveries * telemetry.delivery_size(self._store)
        samples = [sample for open_block in self._open for sample in open_block.samples]
        self._open, self._found_open, self._renamed_open, self._decided = [], [], [], 0
        self._newest.commit()
        self._committed_at = self._clock()
        for listener in self.sample_listeners if samples else ():
            listener(samples)
        await self._release(taken)

    async def _commit_if_due(self) -> None:
        if self._open and not 0 <= self._clock() - self._committed_at < self._commit_interval_ms():
            await self._commit_open()

    def _commit_interval_ms(self) -> int:
        is_durable = any(open_block.taken.source is self._store for open_block in self._open)
        return self._durable_interval_ms if is_durable else VOLATILE_INTERVAL_MS

    def _acknowledge(self, taken: Iterable[TakenEntry]) -> Commit:
        """Return the acknowledgement of the entries of the durable store, for the commit of their decision."""
        ids = [taken_entry.entry.entry_id for taken_entry in taken if taken_entry.source is self._store]
        return telemetry.acknowledge(self._store.keys, ids) if ids else Commit()

    async def _release(self, taken: Iterable[TakenEntry]) -> None:
        """Acknowledge the entries of the volatile store, after the commit of their decision."""
        ids = [taken_entry.entry.entry_id for taken_entry in taken if taken_entry.source is not self._store]
        if self._intake and ids:
            await self._intake.release(ids)

    async def _feed(self, memory: RuleMemory, open_batch: _OpenBatch) -> list[FoundAlarm]:
        evaluator, at, batch = memory.evaluator, memory.facts.at, open_batch.batch
        open_batch.samples.clear()
        found: list[FoundAlarm] = []
        for line in batch.lines:
            await self._slices.pause()
            placed = placed_line(line, batch)
            if isinstance(placed, Sample):
                if self.sample_listeners:
                    open_batch.samples.append(placed)
                if self._newest.is_late(placed, batch.arrived_at):
                    continue
            at = max(at, placed.at)
            moved = moved_to(placed, at, batch.arrived_at)
            found += self._found(memory, evaluator.run_until(at), None)
            self.tags.note(placed)
            found += self._found(memory, evaluator.feed(moved), moved)
        memory.facts = replace(memory.facts, at=at)
        return found

    def _found(self, memory: RuleMemory, findings: Iterable[OrderedFinding], line: Line | None) -> Iterable[FoundAlarm]:
        for finding in findings:
            job = memory.evaluator.jobs.current
            if isinstance(line, Occurrence) or (line and line.job is not None):
                job = line.job
            value: Any = line.value if isinstance(line, Sample) else self.tags.value_of(finding.finding.subject)
            data = line.data if isinstance(line, Occurrence) else line.context if line else None
            yield FoundAlarm(finding.finding, memory.rules[finding.rule_number], value, job, data)

    def _standing(self, memory: RuleMemory) -> list[FoundAlarm]:
        """Return the active findings, as if they were raised now."""
        return [
            FoundAlarm(
                Finding(memory.facts.at, memory.rules[number].id, subject, FindingEvent.RAISED, state.active),
                memory.rules[number],
                self.tags.value_of(subject),
                memory.evaluator.jobs.current,
            )
            for (number, subject), state in memory.evaluator.states.items()
            if state.active
        ]

    async def _pass_time(self) -> None:
        """Evaluate what time alone changes, now that no sample waits."""
        memory, now = await self._decide(), self._clock()
        if self._found_open:
            await self._commit_open()
            memory = await self._decide()
        due = memory.evaluator.next_timer
        if due is not None and due <= now:
            at = max(now, memory.facts.at)
            found = [*self._found(memory, memory.evaluator.run_until(at), None)]
            facts = replace(memory.facts, at=at)
            if not await self._commit(memory.plan_commit(self._store.keys, facts), found, Counter()):
                self._memory = None

    async def _commit(
        self, written: Commit, found: Sequence[FoundAlarm], stats: _Stats, renamed: Sequence[Renamed] = ()
    ) -> bool:
        """Commit a decision with the alarms that follow from it; False when the states were changed meanwhile."""
        for found_alarm in found:
            if found_alarm.finding.event is FindingEvent.RAISED:
                stats[f"rule:triggered:{found_alarm.finding.rule}"] += 1
        if self._memory:
            stats.update({f"rule:rate_limited:{rule}": n for rule, n in self._memory.evaluator.rate_limited.items()})
            self._memory.evaluator.rate_limited.clear()
        return await self.alarms.commit(written, found, stats, renamed)

    async def _write_dead_letter(self, taken: TakenEntry, reason: str) -> None:
        entry = taken.entry
        letter = telemetry.dead_letter(self._store.keys, entry, reason, self._clock())
        await self._store.commit(join((letter, self._acknowledge([taken]), self.alarms.count({"dlq": 1}))))
        await self._release([taken])
        logger.error("dead letter written", kind=LetterKind.TELEMETRY.value, entry=entry.entry_id, reason=reason)

    def _block_ms(self) -> int:
        """Return how long to wait for samples: until the next timer or end of a shelving."""
        timers = (self._memory.evaluator.next_timer if self._memory else None, self.alarms.next_instant)
        state = self._committed_at + self._commit_interval_ms() if self._open else None
        due = min((timer for timer in (*timers, state) if timer is not None), default=None)
        return block_ms() if due is None else min(block_ms(), max(1, due - self._clock()))
