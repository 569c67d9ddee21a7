"""Evaluates many rules over a stream of samples: finds the subjects of each input, and the instants of their timers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import TypeAlias

from edge.model.rule import ExpressionRule, OccursRule, Rule, StaleRule
from edge.rules.evaluate import (
    JobEnded,
    JobStarted,
    OccursState,
    ReadyRule,
    RuleInput,
    SubjectState,
    TimePassed,
    evaluate,
    is_open,
    is_rate_limited,
    new_state,
    next_instant,
)
from edge.rules.finding import Finding
from edge.rules.running_jobs import RunningJobs
from edge.rules.sample_lines import Line, Occurrence, Sample
from edge.rules.sample_value import JOB_ENDED, JOB_STARTED, is_usable
from edge.rules.tag_condition import compile_tag_condition
from edge.rules.tag_pattern import has_wildcard, matches

Key: TypeAlias = tuple[int, str]
"""The number of a rule and one of its subjects."""


@dataclass(frozen=True, slots=True)
class OrderedFinding:
    """A finding with the number of its rule, by which findings of one instant are sorted."""

    rule_number: int
    finding: Finding


_OCCURS_NOTHING = SubjectState(OccursState())


class RuleEvaluator:
    """Keeps the states of all rules and subjects; inputs come in order of time, with `run_until` between them."""

    def __init__(self, rules: Iterable[Rule], begin: int) -> None:
        self.rate_limited: Counter[str] = Counter()
        """Findings that were not raised because of a cooldown, or once per job, by the ids of their rules."""
        self._rules = [ready_rule(rule) for rule in rules]
        self._states: dict[Key, SubjectState] = {}
        self._timers: list[tuple[int, int, str]] = []
        self._due: dict[Key, int] = {}
        self._routes: dict[tuple[str, str | None], tuple[Key, ...]] = {}
        self._jobs = RunningJobs()
        self._changed: set[Key] = set()
        for number, ready in enumerate(self._rules):
            if isinstance(ready.rule, StaleRule) and not has_wildcard(ready.rule.tag):
                self._store((number, ready.rule.tag), new_state(ready.rule, begin))

    @property
    def states(self) -> dict[Key, SubjectState]:
        """Return the state of each subject, by the number of its rule and its name."""
        return self._states

    @property
    def jobs(self) -> RunningJobs:
        """Return the running jobs."""
        return self._jobs

    @property
    def next_timer(self) -> int | None:
        """Return the next instant at which time alone may change a subject; None when there is none."""
        while self._timers and self._due.get(self._timers[0][1:]) != self._timers[0][0]:
            heappop(self._timers)
        return self._timers[0][0] if self._timers else None

    def restore(self, states: Mapping[Key, SubjectState], jobs: RunningJobs) -> None:
        """Restore states that were taken earlier; subjects without one begin as new."""
        self._jobs = jobs
        for key, state in states.items():
            self._store(key, state)
        self._changed.clear()

    def take_changed(self) -> dict[Key, SubjectState | None]:
        """Return the states that changed since the last call, None for a subject that is no longer kept."""
        changed = {key: self._states.get(key) for key in self._changed}
        self._changed.clear()
        return changed

    def run_until(self, now: int) -> Iterator[OrderedFinding]:
        """Yield the findings of every delay, staleness and cooldown that ends up to an instant, that one included."""
        while self._timers and self._timers[0][0] <= now:
            instant, number, subject = heappop(self._timers)
            if self._due.get((number, subject)) == instant:
                yield from self._evaluate((number, subject), TimePassed(), instant)

    def feed(self, given: Line) -> Iterator[OrderedFinding]:
        """Yield the findings of one input."""
        match given:
            case Sample():
                if is_usable(given):
                    yield from self._each(self._route(given), given, given.at)
            case Occurrence(name=name, job=job):
                if name == JOB_STARTED:
                    self._jobs = self._jobs.start(job or "", given.at)
                    yield from self._each(self._known(), JobStarted(job or ""), given.at)
                yield from self._each(self._subjects_of_occurrence(given), given, given.at)
                if name == JOB_ENDED:
                    self._jobs = self._jobs.end(job or "")
                    yield from self._each(self._known(), JobEnded(job or ""), given.at)

    def _each(self, keys: Sequence[Key], given: RuleInput, now: int) -> Iterator[OrderedFinding]:
        for key in keys:
            yield from self._evaluate(key, given, now)

    def _evaluate(self, key: Key, given: RuleInput, now: int) -> Iterator[OrderedFinding]:
        number, subject = key
        ready = self._rules[number]
        state = self._states.get(key)
        if state is None:
            if not is_open(ready.rule, self._jobs):
                return
            state = new_state(ready.rule, now)
        before = state
        state, findings = evaluate(ready, subject, state, given, now, self._jobs)
        if not findings and is_open(ready.rule, self._jobs) and is_rate_limited(ready.rule, before, state, given):
            self.rate_limited[ready.rule.id] += 1
        self._store(key, state)
        for finding in findings:
            yield OrderedFinding(number, finding)

    def _store(self, key: Key, state: SubjectState) -> None:
        known = self._states.get(key)
        if isinstance(state.detector, OccursState) and state == _OCCURS_NOTHING:
            # A subject of occurrences is a job: it must not stay after the job.
            self._states.pop(key, None)
        else:
            self._states[key] = state
        if known is not state and known != state:
            self._changed.add(key)
        instant = next_instant(self._rules[key[0]].rule, state, self._jobs)
        if instant is None:
            self._due.pop(key, None)
        elif self._due.get(key) != instant:
            self._due[key] = instant
            heappush(self._timers, (instant, *key))

    def _known(self) -> list[Key]:
        return sorted(self._states)

    def _route(self, sample: Sample) -> tuple[Key, ...]:
        """Return the subjects that a sample concerns."""
        tag, process = sample.tag, sample.process
        known = self._routes.get((tag, process))
        if known is None:
            known = self._routes[tag, process] = tuple(
                (number, _subject(ready.rule, tag, process))
                for number, ready in enumerate(self._rules)
                if takes(ready, tag)
            )
        return known

    def _subjects_of_occurrence(self, given: Occurrence) -> list[Key]:
        return [
            (number, given.job or ready.rule.pattern)
            for number, ready in enumerate(self._rules)
            if isinstance(ready.rule, OccursRule) and matches(ready.rule.pattern, given.name)
        ]


def ready_rule(rule: Rule) -> ReadyRule:
    """Return a rule with its condition compiled; raises ExpressionSyntaxError for a faulty one."""
    return ReadyRule(rule, compile_tag_condition(rule.when) if isinstance(rule, ExpressionRule) else None)


def takes(ready: ReadyRule, tag: str) -> bool:
    """Return whether a rule evaluates the samples of a tag."""
    match ready.rule:
        case ExpressionRule():
            return ready.condition is not None and tag in ready.condition.tags
        case OccursRule():
            return False
        case rule:
            return matches(rule.tag, tag)


def _subject(rule: Rule, tag: str, process: str | None) -> str:
    match rule:
        case ExpressionRule():
            return rule.id
        case OccursRule():
            return tag
        case _:
            return f"{tag}[{process}]" if rule.subject == "process" and process is not None else tag
