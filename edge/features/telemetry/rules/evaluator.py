"""Evaluates many rules over a stream of samples, live or recorded: finds the subjects of inputs, and due timers."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import islice
from typing import Final, TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from edge.features.telemetry.model.rule import ExpressionRule, OccursRule, Rule, Span, StaleRule
from edge.features.telemetry.rules.comparison import ConditionState, compile_tag_condition
from edge.features.telemetry.rules.subject import (
    RunningJobs,
    ends_with_job,
    subject_kind,
    subject_of_occurrence,
    subject_of_sample,
)
from edge.features.telemetry.rules.subject_state import (
    Finding,
    JobEnded,
    JobStarted,
    OccursState,
    ReadyRule,
    RuleInput,
    SpanEnded,
    SubjectState,
    TimePassed,
    evaluate,
    is_open,
    is_rate_limited,
    new_state,
    next_instant,
)
from edge.ports.sample_lines import Line, Occurrence, Sample
from edge.ports.sample_value import GATEWAY_TAGS, JOB_ENDED, JOB_STARTED, is_usable
from edge.ports.tag import has_wildcard, matches

MAX_CARRIERS: Final = 1_000
"""Carriers of a rule whose states are kept; a line never sees some of them again."""

Key: TypeAlias = tuple[int, str]
"""The number of a rule and one of its subjects."""


class Renamed(Struct, frozen=True):
    """A subject that has another name now; without one it is gone."""

    rule: str
    before: str
    after: str = ""


class OrderedFinding(Struct, frozen=True):
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
        self._spans = tuple(
            dict.fromkeys(item.rule.while_ for item in self._rules if isinstance(item.rule.while_, Span))
        )
        self._states: dict[Key, SubjectState] = {}
        self._timers: list[tuple[int, int, str]] = []
        self._due: dict[Key, int] = {}
        self._takers: dict[str, tuple[tuple[int, Rule], ...]] = {}
        """The rules that take the samples of a tag."""
        self._routes: dict[str, tuple[Key, ...]] = {}
        """The subjects of tags whose rules all have the tag as their subject."""
        self._subjects: list[dict[str, None]] = [{} for _ in self._rules]
        """The subjects of each rule, in the order in which they came."""
        self._renamed: list[Renamed] = []
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
        # The end of a span that no rule has had for a while may have been missed.
        self._jobs = replace(jobs, spans=tuple(span for span in jobs.spans if span[0] in self._spans))
        for key, state in states.items():
            self._store(key, state)
        self._changed.clear()

    def take_changed(self) -> dict[Key, SubjectState | None]:
        """Return the states that changed since the last call, None for a subject that is no longer kept."""
        changed = {key: self._states.get(key) for key in self._changed}
        self._changed.clear()
        return changed

    def take_renamed(self) -> list["Renamed"]:
        """Return the subjects that have another name since the last call: states of an earlier release."""
        renamed, self._renamed = self._renamed, []
        return renamed

    def run_until(self, now: int) -> Iterator[OrderedFinding]:
        """Yield the findings of every delay, staleness and cooldown that ends up to an instant, that one included."""
        while self._timers and self._timers[0][0] <= now:
            instant, number, subject = heappop(self._timers)
            if self._due.get((number, subject)) == instant:
                yield from self._evaluate((number, subject), TimePassed(), instant, self._jobs)

    def feed(self, given: Line) -> Iterator[OrderedFinding]:
        """Yield the findings of one input."""
        match given:
            case Sample():
                if is_usable(given):
                    jobs = self._jobs.of_sample(given.job)
                    yield from self._each(self._route(given, jobs.current), given, given.at, jobs)
            case Occurrence(name=name, job=job):
                yield from self._begin_spans(given)
                if name == JOB_STARTED:
                    self._jobs = self._jobs.start(job or "", given.at)
                    yield from self._each(self._known(), JobStarted(job or ""), given.at)
                yield from self._each(self._subjects_of_occurrence(given), given, given.at)
                if name == JOB_ENDED:
                    self._jobs = self._jobs.end(job or "")
                    yield from self._each(self._known(), JobEnded(job or ""), given.at)
                    self._forget_job(job or "")
                yield from self._end_spans(given)

    def _begin_spans(self, given: Occurrence) -> Iterator[OrderedFinding]:
        for span in self._spans:
            if matches(span.after, given.name):
                self._jobs = self._jobs.begin_span(span, given.at)
                yield from self._each(self._in_span(span), TimePassed(), given.at)

    def _end_spans(self, given: Occurrence) -> Iterator[OrderedFinding]:
        for span in self._spans:
            if matches(span.until, given.name):
                self._jobs = self._jobs.end_span(span)
                yield from self._each(self._in_span(span), SpanEnded(), given.at)

    def _in_span(self, span: Span) -> list[Key]:
        return [key for key in self._known() if self._rules[key[0]].rule.while_ == span]

    def _each(
        self, keys: Sequence[Key], given: RuleInput, now: int, jobs: RunningJobs | None = None
    ) -> Iterator[OrderedFinding]:
        for key in keys:
            yield from self._evaluate(key, given, now, jobs or self._jobs)

    def _evaluate(self, key: Key, given: RuleInput, now: int, jobs: RunningJobs) -> Iterator[OrderedFinding]:
        number, subject = key
        ready = self._rules[number]
        state = self._states.get(key)
        if state is None:
            if not is_open(ready.rule, jobs):
                return
            state = new_state(ready.rule, now)
            self._make_room(ready.rule, number)
        before = state
        state, findings = evaluate(ready, subject, state, given, now, jobs)
        if not findings and is_open(ready.rule, jobs) and is_rate_limited(ready.rule, before, state, given):
            self.rate_limited[ready.rule.id] += 1
        self._store(key, state)
        for finding in findings:
            yield OrderedFinding(number, finding)

    def _store(self, key: Key, state: SubjectState) -> None:
        subject_state = self._states.get(key)
        if isinstance(state.detector, OccursState) and state == _OCCURS_NOTHING:
            # A subject of occurrences is a job: it must not stay after the job.
            self._states.pop(key, None)
            self._subjects[key[0]].pop(key[1], None)
        else:
            self._states[key] = state
            self._subjects[key[0]][key[1]] = None
        if subject_state is not state and subject_state != state:
            self._changed.add(key)
        instant = next_instant(self._rules[key[0]].rule, state, self._jobs)
        if instant is None:
            self._due.pop(key, None)
        elif self._due.get(key) != instant:
            self._due[key] = instant
            heappush(self._timers, (instant, *key))

    def _forget_job(self, job: str) -> None:
        """Drop the subjects of a job that has ended; their findings are cleared."""
        ended = [key for key in self._states if ends_with_job(self._rules[key[0]].rule, key[1], job)]
        for key in ended:
            self._drop(key)

    def _make_room(self, rule: Rule, number: int) -> None:
        """Drop the carriers of a rule that were first seen longest ago, without an active finding."""
        known = self._subjects[number]
        if subject_kind(rule) != "carrier" or len(known) < MAX_CARRIERS:
            return
        idle = (text for text in known if not self._states[number, text].active)
        for subject in list(islice(idle, MAX_CARRIERS // 10)):
            self._drop((number, subject))

    def _drop(self, key: Key) -> None:
        del self._states[key]
        self._subjects[key[0]].pop(key[1], None)
        self._due.pop(key, None)
        self._changed.add(key)

    def _known(self) -> list[Key]:
        return sorted(self._states)

    def _route(self, sample: Sample, job: str | None) -> tuple[Key, ...]:
        """Return the subjects that a sample of a job concerns."""
        tag = sample.tag
        rules = self._takers.get(tag)
        if rules is None:
            takers = [(number, ready.rule) for number, ready in enumerate(self._rules) if takes(ready, tag)]
            rules = self._takers[tag] = tuple(takers)
        known = self._routes.get(sample.name)
        if known is None:
            known = tuple(key for number, rule in rules for key in self._keys(number, rule, sample, job))
            if sample.gateway is not None:
                self._take_over(known, sample, job)
            if all(subject_kind(rule) == "tag" and not isinstance(rule, ExpressionRule) for _, rule in rules):
                self._routes[sample.name] = known
        return known

    def _keys(self, number: int, rule: Rule, sample: Sample, job: str | None) -> list[Key]:
        """Return the subjects of a rule; a condition over tags of gateways has one for each of them."""
        subject = subject_of_sample(rule, sample, job)
        if isinstance(rule, ExpressionRule) and sample.gateway is None:
            return [(number, text) for text in self._subjects[number]] or [(number, subject)]
        return [(number, subject)]

    def _take_over(self, keys: Sequence[Key], sample: Sample, job: str | None) -> None:
        """Begin new subjects of a gateway with the state that an earlier release kept without its name."""
        for number, subject in keys:
            rule = self._rules[number].rule
            former = number, subject_of_sample(rule, replace(sample, gateway=None), job)
            is_known, state = (number, subject) in self._states, self._states.get(former)
            if state is not None:
                self._drop(former)
                self._renamed.append(Renamed(rule.id, former[1], "" if is_known else subject))
            if is_known:
                continue
            if state is not None:
                self._store((number, subject), state)
                self._changed.add((number, subject))
            elif isinstance(rule, ExpressionRule) and self._subjects[number]:
                self._store((number, subject), _of_another(self._states[number, next(iter(self._subjects[number]))]))

    def _subjects_of_occurrence(self, given: Occurrence) -> list[Key]:
        return [
            (number, subject_of_occurrence(ready.rule, given))
            for number, ready in enumerate(self._rules)
            if isinstance(ready.rule, OccursRule) and matches(ready.rule.pattern, given.name)
        ]


def _of_another(state: SubjectState) -> SubjectState:
    """Return the state of a condition for another gateway: the values that no gateway has measured itself."""
    values = state.detector.values if isinstance(state.detector, ConditionState) else {}
    shared = {tag: value for tag, value in values.items() if not tag.startswith(GATEWAY_TAGS)}
    return SubjectState(ConditionState(shared))


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


_Placed: TypeAlias = tuple[int, OrderedFinding]
"""A finding with the number of its input; a timer has that of the input before it."""


def replay(rules: Iterable[Rule], inputs: Iterable[Line], until: int | None) -> Iterator[Finding]:
    """Yield the findings of inputs in order of time, up to and including `until` (default: the last input).

    Findings of one instant are sorted by rule, then by input, then by the name of the subject.
    """
    evaluator: RuleEvaluator | None = None
    waiting: list[_Placed] = []
    last = 0
    for number, given in enumerate(inputs, 1):
        if until is not None and given.at > until:
            break
        if evaluator is None:
            evaluator = RuleEvaluator(rules, given.at)
        last = given.at
        waiting += [(number - 1, ordered_finding) for ordered_finding in evaluator.run_until(given.at)]
        yield from _take_before(waiting, given.at)
        waiting += [(number, ordered_finding) for ordered_finding in evaluator.feed(given)]
    if evaluator is not None:
        waiting += [
            (number, ordered_finding) for ordered_finding in evaluator.run_until(last if until is None else until)
        ]
    yield from _take_before(waiting, None)


def _take_before(waiting: list[_Placed], at: int | None) -> Iterator[Finding]:
    """Remove and yield the findings before an instant, in order; a later input may still add to that instant."""
    waiting.sort(key=_order)
    count = sum(at is None or ordered_finding.finding.at < at for _, ordered_finding in waiting)
    yield from (ordered_finding.finding for _, ordered_finding in waiting[:count])
    del waiting[:count]


def _order(placed: _Placed) -> tuple[int, int, int, str]:
    number, ordered_finding = placed
    return ordered_finding.finding.at, ordered_finding.rule_number, number, ordered_finding.finding.subject
