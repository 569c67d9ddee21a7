"""What the rules make of batches that are not committed yet; nothing here reads or writes the store."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from edge.features.telemetry.alarm_decision import FoundAlarm
from edge.features.telemetry.latest_tags import LatestTags, NewestSamples
from edge.features.telemetry.model.rule import Rule
from edge.features.telemetry.rule_memory import RuleMemory, StreamFacts
from edge.features.telemetry.rules.evaluator import OrderedFinding, Renamed
from edge.features.telemetry.rules.subject_state import Finding, FindingEvent
from edge.ports.batch import Batch, moved_to, placed_line
from edge.ports.sample_lines import Line, Occurrence, Sample


class OpenDecision:
    """The decision about the batches since the last commit; after a commit that failed one begins again without them.

    `memory` has the states of the rules as the store has them at the beginning, and as they are after each batch.
    """

    def __init__(self, memory: RuleMemory, tags: LatestTags, newest: NewestSamples) -> None:
        """Decide with the last samples of tags, and the newest of the batches that were committed."""
        newest.rollback()
        self.memory = memory
        self._tags = tags
        self._newest = newest
        self._begin()

    def _begin(self) -> None:
        self.decided = 0
        """The number of batches in the decision."""
        self.lines = 0
        self.found: list[FoundAlarm] = []
        self.renamed: list[Renamed] = []
        """Subjects that have another name now."""
        self.samples: list[Sample] = []
        """The samples of the batches as they were evaluated."""

    @property
    def facts(self) -> StreamFacts:
        """Return the facts to commit."""
        return replace(self.memory.facts, jobs=self.memory.evaluator.jobs)

    def evaluate(self, batch: Batch) -> Iterator[None]:
        """Evaluate a batch, unless it came before; the caller may let others run at each step, one for each line."""
        memory, found_alarms = self.memory, list[FoundAlarm]()
        if not memory.facts.has(batch.producer, batch.number):
            at = memory.facts.at
            for line in batch.lines:
                yield
                placed = placed_line(line, batch)
                if isinstance(placed, Sample):
                    self.samples.append(placed)
                    if self._newest.is_late(placed, batch.arrived_at):
                        continue
                at = max(at, placed.at)
                moved = moved_to(placed, at, batch.arrived_at)
                found_alarms += self._alarms_of(memory.evaluator.run_until(at), None)
                self._tags.note(placed)
                found_alarms += self._alarms_of(memory.evaluator.feed(moved), moved)
            memory.facts = replace(memory.facts, at=at)
        memory.facts = memory.facts.with_batch(batch.producer, batch.number)
        renamed = memory.evaluator.take_renamed()
        memory.forget([(element.rule, element.before) for element in renamed])
        self.found += found_alarms
        self.renamed += renamed
        self.lines += len(batch.lines)
        self.decided += 1

    def pass_time(self, now: int) -> tuple[StreamFacts, list[FoundAlarm]] | None:
        """Evaluate what time alone changes: return the facts and the alarms to commit; None when nothing is due."""
        due = self.memory.evaluator.next_timer
        if due is None or due > now:
            return None
        at = max(now, self.memory.facts.at)
        found_alarms = [*self._alarms_of(self.memory.evaluator.run_until(at), None)]
        return replace(self.memory.facts, at=at), found_alarms

    def take_counts(self, found: Sequence[FoundAlarm]) -> Counter[str]:
        """Return by rule how many alarms were found, and how many findings were held back since the last time."""
        raised = (alarm.finding.rule for alarm in found if alarm.finding.event is FindingEvent.RAISED)
        counts = Counter(f"rule:triggered:{rule}" for rule in raised)
        held_back = self.memory.evaluator.rate_limited
        counts.update({f"rule:rate_limited:{rule}": number for rule, number in held_back.items()})
        held_back.clear()
        return counts

    def standing(self) -> list[FoundAlarm]:
        """Return the active findings, as if they were raised now."""
        memory = self.memory
        return [
            FoundAlarm(
                Finding(memory.facts.at, memory.rules[number].id, subject, FindingEvent.RAISED, state.active),
                memory.rules[number],
                self._tags.value_of(subject),
                self._job_of(memory.rules[number]),
            )
            for (number, subject), state in memory.evaluator.states.items()
            if state.active
        ]

    def settle(self) -> None:
        """Begin the next decision: this one was committed."""
        self._newest.commit()
        self._begin()

    def _job_of(self, rule: Rule) -> str | None:
        """Return the job of a finding whose sample names none: only a rule about jobs has one, that started last.

        Any other alarm, such as that of an oven, would bear the identifier of a part that it does not concern.
        """
        return self.memory.evaluator.jobs.current if rule.while_ is not None or rule.action != "none" else None

    def _alarms_of(self, findings: Iterable[OrderedFinding], line: Line | None) -> Iterator[FoundAlarm]:
        for ordered in findings:
            job = self._job_of(self.memory.rules[ordered.rule_number])
            if isinstance(line, Occurrence) or (line and line.job is not None):
                job = line.job
            value: Any = line.value if isinstance(line, Sample) else self._tags.value_of(ordered.finding.subject)
            data = line.data if isinstance(line, Occurrence) else line.context if line else None
            yield FoundAlarm(ordered.finding, self.memory.rules[ordered.rule_number], value, job, data)
