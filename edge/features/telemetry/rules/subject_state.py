"""The state of a rule for one subject: an input makes the next state, and findings.

Pure: the same arguments always return the same answer; time and running jobs are arguments.
"""

from enum import StrEnum
from typing import Any, TypeAlias, assert_never

from msgspec import Struct
from msgspec.structs import replace

from edge.features.telemetry.model.rule import (
    BaselineRule,
    ControlChartRule,
    EntersRule,
    ExpressionRule,
    LimitRule,
    OccursRule,
    RateRule,
    Rule,
    ShareRule,
    StaleRule,
)
from edge.features.telemetry.rules import baseline, comparison, control_chart
from edge.features.telemetry.rules.baseline import BaselineState
from edge.features.telemetry.rules.comparison import (
    ConditionState,
    EntersState,
    LimitState,
    RateState,
    ShareState,
    StaleState,
    TagCondition,
)
from edge.features.telemetry.rules.control_chart import ControlChartState
from edge.features.telemetry.rules.subject import RunningJobs, ends_with_job
from edge.ports.sample_lines import Occurrence, Sample
from edge.ports.sample_value import as_number


class FindingEvent(StrEnum):
    """How the finding of a rule for a subject changes."""

    RAISED = "raised"
    ESCALATED = "escalated"
    EASED = "eased"
    CLEARED = "cleared"


class Finding(Struct, frozen=True):
    """A change of the finding of a rule for a subject; a cleared one has the severity that it had before."""

    at: int
    rule: str
    subject: str
    event: FindingEvent
    severity: int

    def as_json(self) -> dict[str, Any]:
        """Return the finding as a line of `edge rules test --json`."""
        return {
            "at": self.at,
            "rule": self.rule,
            "subject": self.subject,
            "event": self.event.value,
            "severity": self.severity,
        }


class OccursState(Struct, frozen=True, tag="occurs"):
    """An occurrence leaves no state."""


Detector: TypeAlias = (
    LimitState
    | BaselineState
    | ControlChartState
    | RateState
    | StaleState
    | ShareState
    | EntersState
    | OccursState
    | ConditionState
)


class SubjectState(Struct, frozen=True, omit_defaults=True):
    """The state of a rule for a subject: what its kind remembers, and the finding that is active.

    `active` is the severity of the finding, 0 without one. `raised_in` are the running jobs in which it was raised.
    """

    detector: Detector
    active: int = 0
    cooldown_until: int | None = None
    raised_in: tuple[str, ...] = ()


class ReadyRule(Struct, frozen=True):
    """A rule with its compiled condition, if it has one."""

    rule: Rule
    condition: TagCondition | None = None


class JobStarted(Struct, frozen=True):
    """A job has started; the running jobs hold it already."""

    job: str


class JobEnded(Struct, frozen=True):
    """A job has ended; the running jobs hold it no longer."""

    job: str


class SpanEnded(Struct, frozen=True):
    """The span of the rule has ended; the running jobs hold it no longer."""


class TimePassed(Struct, frozen=True):
    """Nothing but time: a delay, a staleness or a cooldown ends."""


RuleInput: TypeAlias = Sample | Occurrence | JobStarted | JobEnded | SpanEnded | TimePassed


def new_state(rule: Rule, at: int) -> SubjectState:
    """Return the state of a subject that is watched from an instant on."""
    match rule:
        case LimitRule():
            return SubjectState(LimitState())
        case BaselineRule():
            return SubjectState(BaselineState())
        case ControlChartRule():
            return SubjectState(ControlChartState())
        case RateRule():
            return SubjectState(RateState())
        case StaleRule():
            return SubjectState(StaleState(at))
        case ShareRule():
            return SubjectState(ShareState())
        case EntersRule():
            return SubjectState(EntersState())
        case OccursRule():
            return SubjectState(OccursState())
        case ExpressionRule():
            return SubjectState(ConditionState())
        case _:
            assert_never(rule)


def evaluate(
    ready: ReadyRule, subject: str, state: SubjectState, given: RuleInput, now: int, jobs: RunningJobs
) -> tuple[SubjectState, tuple[Finding, ...]]:
    """Return the next state of a subject and the findings of one input, which arrives at `now`."""
    rule = ready.rule
    if state.cooldown_until is not None and now >= state.cooldown_until:
        state = replace(state, cooldown_until=None)
    match given:
        case Sample() | Occurrence() if not is_open(rule, jobs):
            return state, ()
        case Sample():
            detector, new_value = _observe(ready, state.detector, given, now, jobs)
            state = replace(state, detector=detector)
            if new_value:
                return _raise_once(rule, subject, state, now, jobs.current)
        case Occurrence():
            job = given.job if given.job in jobs.ids else jobs.current
            return _raise_once(rule, subject, state, now, job)
        case JobEnded(job=job):
            state = _without_job(rule, subject, state, job, jobs)
        case SpanEnded():
            state = replace(state, detector=_reset_condition(state.detector))
        case JobStarted() | TimePassed():
            pass
        case _:
            assert_never(given)
    state = replace(state, detector=_pass_time(rule, state.detector, now, jobs))
    return _settle(rule, subject, state, now, jobs)


def is_open(rule: Rule, jobs: RunningJobs) -> bool:
    """Return whether a rule takes samples now: always, while a job runs, or in its span."""
    return rule.while_ is None or jobs.open_since(rule) is not None


def next_instant(rule: Rule, state: SubjectState, jobs: RunningJobs) -> int | None:
    """Return the next instant at which time alone may change a subject; None when there is none."""
    match rule, state.detector:
        case LimitRule(), LimitState() as levels:
            end = comparison.end_of_delay(rule, levels)
        case StaleRule(), StaleState() as stale:
            end = comparison.end_of_silence(rule, stale, jobs)
        case _:
            end = None
    waits = isinstance(state.detector, OccursState) or (not state.active and _severity(rule, state.detector) > 0)
    # The end of a cooldown lets go of a subject of occurrences, and raises a condition that still holds.
    instants = (end, state.cooldown_until if waits else None)
    return min((instant for instant in instants if instant is not None), default=None)


def _observe(
    ready: ReadyRule, detector: Detector, sample: Sample, now: int, jobs: RunningJobs
) -> tuple[Detector, bool]:
    """Return what a kind remembers after a sample, and whether it found a new value (`enters` only)."""
    value = as_number(sample.value)
    match ready.rule, detector:
        case StaleRule(), _:
            return comparison.observe_arrival(max(now, sample.arrived_at)), False
        case ShareRule() as rule, ShareState() as state:
            return comparison.observe_share(rule, state, sample.value), False
        case EntersRule(), EntersState() as state:
            return comparison.observe_value(state, sample.value, jobs.current)
        case ExpressionRule(), ConditionState() as state if ready.condition is not None:
            if ready.condition.accepts(sample.tag, sample.value):
                state = comparison.observe_tag(ready.condition, state, sample.tag, sample.value)
            return state, False
        case _ if value is None:
            return detector, False
        case LimitRule() as rule, LimitState() as state:
            return comparison.observe_limit(rule, state, value, now), False
        case BaselineRule() as rule, BaselineState() as state:
            return baseline.observe(rule, state, value, now), False
        case ControlChartRule() as rule, ControlChartState() as state:
            return control_chart.observe(rule, state, value), False
        case RateRule() as rule, RateState() as state:
            return comparison.observe_rate(rule, state, value, now), False
        case _:
            return detector, False


def _pass_time(rule: Rule, detector: Detector, now: int, jobs: RunningJobs) -> Detector:
    match rule, detector:
        case LimitRule(), LimitState() as levels:
            return comparison.pass_delay(rule, levels, now)
        case StaleRule(), StaleState() as stale:
            return comparison.pass_silence(rule, stale, now, jobs)
        case _:
            return detector


def _without_job(rule: Rule, subject: str, state: SubjectState, job: str, jobs: RunningJobs) -> SubjectState:
    """Return the state after the end of a job: what was noted for it is dropped; a closed rule leaves its condition."""
    detector = state.detector
    if isinstance(detector, EntersState):
        detector = comparison.forget_job(detector, job)
    if not is_open(rule, jobs) or ends_with_job(rule, subject, job):
        detector = _reset_condition(detector)
    return replace(state, detector=detector, raised_in=tuple(text for text in state.raised_in if text != job))


def _reset_condition(detector: Detector) -> Detector:
    """Return the detector as its rule closes: windows and learned values stay; level, delay and condition go."""
    match detector:
        case LimitState():
            return LimitState()
        case EntersState() | OccursState():
            return detector
        case _:
            return replace(detector, holds=False)


def is_rate_limited(rule: Rule, before: SubjectState, after: SubjectState, given: RuleInput) -> bool:
    """Return whether a rule suppressed a finding: its cooldown runs, or it already raised an alarm in this job.

    For evaluations that returned no finding.
    """
    if not (rule.cooldown_seconds or rule.once) or after.active:
        return False
    match before.detector, after.detector:
        case EntersState(), EntersState():
            return isinstance(given, Sample) and before.detector != after.detector
        case OccursState(), OccursState():
            return isinstance(given, Occurrence)
        case _:
            return not _severity(rule, before.detector) and bool(_severity(rule, after.detector))


def _severity(rule: Rule, detector: Detector) -> int:
    """Return the severity of the condition as it is now; 0 when it does not hold."""
    match rule, detector:
        case LimitRule(), LimitState() as levels:
            return comparison.severity_of(rule, levels)
        case _, EntersState() | OccursState() | LimitState():
            return 0
        case _, condition:
            return (rule.severity or 0) if condition.holds else 0


def _is_blocked(rule: Rule, state: SubjectState, job: str | None) -> bool:
    cooling = state.cooldown_until is not None and not rule.bypass_cooldown
    return cooling or (rule.once is not None and job is not None and job in state.raised_in)


def _raised(rule: Rule, state: SubjectState, now: int, job: str | None) -> SubjectState:
    """Return the state with the marks of a raise: the cooldown runs, and the job is noted."""
    cooldown = round(rule.cooldown_seconds * 1000)
    marked = rule.once is not None and job is not None
    return replace(
        state,
        cooldown_until=now + cooldown if cooldown else None,
        raised_in=(*state.raised_in, job) if marked and job is not None else state.raised_in,
    )


def _raise_once(
    rule: Rule, subject: str, state: SubjectState, now: int, job: str | None
) -> tuple[SubjectState, tuple[Finding, ...]]:
    """Raise a finding that is over at once; during a cooldown, and the second time in a job, it is dropped."""
    if _is_blocked(rule, state, job):
        return state, ()
    finding = Finding(now, rule.id, subject, FindingEvent.RAISED, rule.severity or 0)
    return _raised(rule, state, now, job), (finding,)


def _settle(
    rule: Rule, subject: str, state: SubjectState, now: int, jobs: RunningJobs
) -> tuple[SubjectState, tuple[Finding, ...]]:
    """Compare the condition with the active finding: raise, escalate, ease or clear it."""
    severity, active = _severity(rule, state.detector), state.active
    if severity == active or (not active and _is_blocked(rule, state, jobs.current)):
        return state, ()
    event, shown = FindingEvent.RAISED, severity
    if active:
        event = FindingEvent.ESCALATED if severity > active else FindingEvent.EASED
        if not severity:
            event, shown = FindingEvent.CLEARED, active
    elif severity:
        state = _raised(rule, state, now, jobs.current)
    return replace(state, active=severity), (Finding(now, rule.id, subject, event, shown),)
