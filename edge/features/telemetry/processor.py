"""Evaluates the batches of the stream: decides with the rules, commits once, acknowledges in that commit."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

import structlog
from msgspec import Struct

from edge.features.telemetry.alarm_decision import FLOOD_ALARMS, FoundAlarm
from edge.features.telemetry.alarm_keeper import AlarmKeeper
from edge.features.telemetry.intake import Intake, TakenEntry
from edge.features.telemetry.latest_tags import LatestTags, NewestSamples
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.open_decision import OpenDecision
from edge.features.telemetry.rule_memory import StreamFacts, load_memory
from edge.features.telemetry.rules.evaluator import Renamed
from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock, Latency
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.text import Text
from edge.foundation.ticks import Slices
from edge.ports.batch import Batch, BatchError, decode_batch
from edge.ports.sample_lines import Sample
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
    """A batch whose decision is not committed, and how many of its lines cannot be read."""

    taken: TakenEntry
    batch: Batch
    faults: int


class RuleProcessor:
    """The only consumer at work: evaluates entries in order, and timers when the stream is drained.

    `OpenDecision` decides, `Intake` has the entries, `AlarmKeeper` the alarms; this commits.
    """

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
        self.tags = LatestTags()
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
        self._intake = Intake(store, volatile, clock, retry_s)
        self._faults = LogThrottle(logger)
        self._durable_interval_ms = durable_interval_ms
        self._newest = NewestSamples()
        self._open: list[_OpenBatch] = []
        """Batches that wait for a common commit."""
        self._decision: OpenDecision | None = None
        """The decision about them so far; None when the states of the rules must be read again."""
        self._committed_at = 0

    @property
    def rules(self) -> Sequence[Rule]:
        """Return the rules, the built-in ones included."""
        return self._rules

    def use_rules(self, rules: Sequence[Rule]) -> None:
        """Evaluate other rules from the next entry on; states of rules that are the same continue."""
        self._rules = rules
        self._decision = None

    @property
    def running_jobs(self) -> tuple[str, ...]:
        """Return the jobs that run, by the occurrences so far."""
        return self._decision.memory.evaluator.jobs.ids if self._decision else ()

    async def run(self) -> None:
        """Evaluate until cancelled; an unavailable store is waited for."""
        await restart_on_outage("telemetry", self._follow, self._retry_s)

    async def _follow(self) -> None:
        # After an outage the outcome of the commit is unknown: the stores deliver unacknowledged entries again.
        self._decision = None
        self._open = []
        await self._intake.begin()
        await self._load()
        async for pending in self._intake.pending():
            await self._process(pending)
        async with self._intake.opened(self._block_ms) as async_iterator:
            async for entries in async_iterator:
                for entry in entries:
                    await self._process(entry)
                if not entries:
                    await self._pass_time()
                for claimed in await self._intake.claimed_if_due():
                    await self._process(claimed)
                await self._commit_if_due()
                await self.alarms.tend(lambda: self._decision.standing() if self._decision else [])
                await self.tags.save_if_due(self._store, self._clock())

    async def _load(self) -> OpenDecision:
        rules = self._rules
        memory = await load_memory(self._store, rules, self._clock())
        decision = OpenDecision(memory, self.tags, self._newest)
        if rules is not self._rules:
            return await self._load()
        self._decision = decision
        await self.alarms.load(decision.standing(), memory.guard(self._store.keys))
        return decision

    async def _process(self, taken: TakenEntry) -> None:
        """Evaluate an entry; write a dead letter when it cannot be evaluated."""
        entry = taken.entry
        if taken.deliveries > telemetry.MAX_DELIVERIES:
            await self._write_dead_letter(taken, Text.of("it was delivered {count} times", count=taken.deliveries))
            return
        while True:
            try:
                await self._evaluate(taken)
            except Unavailable:
                raise
            except BatchError as error:
                await self._write_dead_letter(taken, Text.of("it is not a batch: {reason}", reason=error))
            except Exception as error:
                # A defect in one batch must not stop the others; its states are half done, the store has whole ones.
                logger.exception("batch cannot be evaluated", entry=entry.entry_id)
                self._decision = None
                self._open = [open_batch for open_batch in self._open if open_batch.taken is not taken]
                deliveries = await telemetry.count_delivery(taken.source, entry.entry_id)
                if deliveries <= telemetry.MAX_DELIVERIES:
                    continue
                await self._write_dead_letter(
                    taken, Text.of("it met a defect of this software: {reason}", reason=repr(error))
                )
            return

    async def _evaluate(self, taken: TakenEntry) -> None:
        """Decide about an entry and commit, unless it may wait for a common commit. Raises BatchError."""
        entry = taken.entry
        if not entry.fields:
            # It was trimmed from the stream before it was evaluated.
            await self._settle(taken, Commit(), "trimmed")
            return
        batch, faults = decode_batch(entry.fields)
        if not batch.lines:
            self.alarms.look_soon()
        for fault in faults:
            self._faults.warning("sample refused", batch.producer, reason=fault, entry=entry.entry_id)
        self._open.append(_OpenBatch(taken, batch, len(faults)))
        decision = await self._decide()
        # An entry that may have ended the process before must not make others pending again.
        if decision.found or decision.renamed or taken.deliveries:
            await self._commit_open()
        await self._commit_if_due()

    async def _decide(self) -> OpenDecision:
        """Return the decision about all open batches."""
        decision = self._decision or await self._load()
        for open_batch in self._open[decision.decided :]:
            for _ in decision.evaluate(open_batch.batch):
                await self._slices.pause()
        return decision

    async def _commit_open(self) -> None:
        """Commit the open batches; when another processor was faster, decide about all of them again."""
        while True:
            decision = await self._decide()
            taken_entries = [open_batch.taken for open_batch in self._open]
            stats: _Stats = Counter({"processed": decision.lines})
            if faults := sum(open_batch.faults for open_batch in self._open):
                stats["refused"] = faults
            acknowledged = self._intake.acknowledge(taken_entries)
            if await self._commit(decision, decision.facts, decision.found, acknowledged, stats, decision.renamed):
                break
        if decision.found:
            self.alarm_latency.record(max(0, self._clock() - self._open[-1].batch.arrived_at) / 1000)
        self.evaluated += decision.lines
        self.written_bytes += sum(map(self._intake.is_durable, taken_entries)) * telemetry.delivery_size(self._store)
        samples = decision.samples
        self._open = []
        decision.settle()
        self._committed_at = self._clock()
        for listener in self.sample_listeners if samples else ():
            listener(samples)
        await self._intake.release(taken_entries)

    async def _commit_if_due(self) -> None:
        if self._open and not 0 <= self._clock() - self._committed_at < self._commit_interval_ms():
            await self._commit_open()

    def _commit_interval_ms(self) -> int:
        is_durable = any(self._intake.is_durable(open_batch.taken) for open_batch in self._open)
        return self._durable_interval_ms if is_durable else VOLATILE_INTERVAL_MS

    async def _pass_time(self) -> None:
        """Evaluate what time alone changes, now that no sample waits."""
        decision, now = await self._decide(), self._clock()
        if decision.found:
            await self._commit_open()
            decision = await self._decide()
        if changed := decision.pass_time(now):
            await self._commit(decision, *changed, Commit(), Counter())

    async def _commit(
        self,
        decision: OpenDecision,
        facts: StreamFacts,
        found: Sequence[FoundAlarm],
        acknowledged: Commit,
        stats: _Stats,
        renamed: Sequence[Renamed] = (),
    ) -> bool:
        """Commit a decision with the alarms that follow from it; False when the states were changed meanwhile."""
        commit = join((decision.memory.plan_commit(self._store.keys, facts), acknowledged))
        is_committed = await self.alarms.commit(commit, found, stats + decision.take_counts(found), renamed)
        if not is_committed:
            self._decision = None
        return is_committed

    async def _write_dead_letter(self, taken: TakenEntry, reason: str | Text) -> None:
        entry = taken.entry
        await self._settle(taken, telemetry.dead_letter(self._store.keys, entry, reason, self._clock()), "dlq")
        logger.error("dead letter written", kind=LetterKind.TELEMETRY.value, entry=entry.entry_id, reason=str(reason))

    async def _settle(self, taken: TakenEntry, written: Commit, counter: str) -> None:
        """Acknowledge an entry that is not evaluated, and count it."""
        acknowledged = self._intake.acknowledge([taken])
        await self._store.commit(join((written, acknowledged, self.alarms.count({counter: 1}))))
        await self._intake.release([taken])

    def _block_ms(self) -> int:
        """Return how long to wait for samples: until the next timer or end of a shelving."""
        timers = (self._decision.memory.evaluator.next_timer if self._decision else None, self.alarms.next_instant)
        state = self._committed_at + self._commit_interval_ms() if self._open else None
        due = min((timer for timer in (*timers, state) if timer is not None), default=None)
        return block_ms() if due is None else min(block_ms(), max(1, due - self._clock()))
