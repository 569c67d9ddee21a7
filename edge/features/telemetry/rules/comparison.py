"""The rule kinds `limit`, `stale`, `rate`, `share`, `enters` and `expression`, which compare samples."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edge.expression.compiler import Expression, compile_condition
from edge.expression.syntax import ExpressionSyntaxError, Kind, MemberTest, Name, names_of, needed_kinds, nodes_of
from edge.expression.value import UNKNOWN, Evaluate, EvaluationError, kind_of_value
from edge.features.telemetry.model.rule import LimitLevel, LimitRule, RateRule, ShareRule, StaleRule
from edge.features.telemetry.rules.subject import RunningJobs
from edge.foundation.text import Text

_HIGH: Final = ("high_high", "high")
_LOW: Final = ("low", "low_low")


class LevelState(msgspec.Struct, frozen=True, omit_defaults=True):
    """One limit: the side of the last sample that decides, since when, and whether the level is active."""

    inside: bool = False
    since: int = 0
    active: bool = False


class LimitState(msgspec.Struct, frozen=True, tag="limit", omit_defaults=True):
    """The levels of a subject by the names of their limits."""

    levels: dict[str, LevelState] = {}


def observe_limit(rule: LimitRule, state: LimitState, value: float, at: int) -> LimitState:
    """Return the state after a sample. A sample in the hysteresis band keeps the side of the sample before it."""
    levels = dict(state.levels)
    for name, limit in given_limits(rule):
        level = levels.get(name, LevelState())
        inside = _side(rule, name, limit, value, inside=level.inside)
        if inside is not level.inside:
            levels[name] = replace(level, inside=inside, since=at)
    return pass_delay(rule, LimitState(levels), at)


def pass_delay(rule: LimitRule, state: LimitState, now: int) -> LimitState:
    """Return the state with every level switched whose delay is over."""
    switched = {
        name: replace(level, active=level.inside)
        for name, level in state.levels.items()
        if level.active is not level.inside and now >= _end_of_delay(rule, level)
    }
    return LimitState(state.levels | switched) if switched else state


def end_of_delay(rule: LimitRule, state: LimitState) -> int | None:
    """Return when the next delay ends; None when none runs."""
    return min(
        (_end_of_delay(rule, level) for level in state.levels.values() if level.active is not level.inside),
        default=None,
    )


def severity_of(rule: LimitRule, state: LimitState) -> int:
    """Return the largest severity of all active levels; 0 when none is active."""
    return max(
        (
            level_severity(rule, limit)
            for name, limit in given_limits(rule)
            if state.levels.get(name, LevelState()).active
        ),
        default=0,
    )


def given_limits(rule: LimitRule) -> list[tuple[str, LimitLevel]]:
    """Return the limits that a rule has, with their names."""
    found = ((name, getattr(rule.limits, name)) for name in (*_HIGH, *_LOW))
    return [(name, limit) for name, limit in found if limit is not None]


def level_severity(rule: LimitRule, limit: LimitLevel) -> int:
    """Return the severity of a limit: its own, else that of the rule."""
    return limit.severity if limit.severity is not None else rule.severity or 0


def _side(rule: LimitRule, name: str, limit: LimitLevel, value: float, *, inside: bool) -> bool:
    if name in _HIGH:
        reached, left = value > limit.at, value <= limit.at - rule.hysteresis
    else:
        reached, left = value < limit.at, value >= limit.at + rule.hysteresis
    return reached or (inside and not left)


def _end_of_delay(rule: LimitRule, level: LevelState) -> int:
    seconds = rule.on_delay_seconds if level.inside else rule.off_delay_seconds
    return level.since + round(seconds * 1000)


class StaleState(msgspec.Struct, frozen=True, tag="stale", omit_defaults=True):
    """The instant of the last sample, or since when the subject is watched."""

    since: int = 0
    holds: bool = False


def observe_arrival(at: int) -> StaleState:
    """Return the state after a sample."""
    return StaleState(at)


def pass_silence(rule: StaleRule, state: StaleState, now: int, jobs: RunningJobs) -> StaleState:
    """Return the state at an instant; with `while` staleness counts from its beginning at the earliest."""
    end = _end(rule, state, jobs)
    return replace(state, holds=end is not None and now >= end)


def end_of_silence(rule: StaleRule, state: StaleState, jobs: RunningJobs) -> int | None:
    """Return when the subject becomes stale; None when it is, or when the rule does not hold now."""
    return None if state.holds else _end(rule, state, jobs)


def _end(rule: StaleRule, state: StaleState, jobs: RunningJobs) -> int | None:
    since = state.since
    if rule.while_ is not None:
        begin = jobs.open_since(rule)
        if begin is None:
            return None
        since = max(since, begin)
    return since + round(rule.seconds * 1000)


NOT_OK = "NotOK"
MAX_VALUES = 1_000
"""Different values of a subject in a job that are remembered; the oldest are forgotten first."""


class RateState(msgspec.Struct, frozen=True, tag="rate", omit_defaults=True):
    """The sample before."""

    at: int = 0
    value: float | None = None
    holds: bool = False


def observe_rate(rule: RateRule, state: RateState, value: float, at: int) -> RateState:
    """Return the state after a sample; one of the same instant as the sample before is ignored."""
    if state.value is None:
        return RateState(at, value, state.holds)
    if at == state.at:
        return state
    return RateState(at, value, abs(value - state.value) / ((at - state.at) / 1000) > rule.per_second)


class ShareState(msgspec.Struct, frozen=True, tag="share", omit_defaults=True):
    """The last results: whether each was bad."""

    recent: tuple[bool, ...] = ()
    holds: bool = False


def observe_share(rule: ShareRule, state: ShareState, value: Any) -> ShareState:
    """Return the state after a result; `false` and "NotOK" are bad."""
    recent = (*state.recent, value is False or value == NOT_OK)[-rule.of :]
    return ShareState(recent, sum(recent) >= rule.bad)


class EntersState(msgspec.Struct, frozen=True, tag="enters", omit_defaults=True):
    """The values that a subject had in each running job, and its last value."""

    seen: dict[str, tuple[str, ...]] = {}
    last: str | None = None


def observe_value(state: EntersState, value: Any, job: str | None) -> tuple[EntersState, bool]:
    """Return the state after a sample, and whether the value is new: in its job, else against the value before."""
    key = _key(value)
    if job is None:
        return replace(state, last=key), state.last is not None and key != state.last
    seen = state.seen.get(job, ())
    if key in seen:
        return replace(state, last=key), False
    return EntersState(state.seen | {job: (*seen, key)[-MAX_VALUES:]}, key), True


def forget_job(state: EntersState, job: str) -> EntersState:
    """Return the state without the values of a job that has ended."""
    return replace(state, seen={text: values for text, values in state.seen.items() if text != job})


def _key(value: Any) -> str:
    """Return a text that is equal for equal values only; 1 and 1.0 are equal, 1 and true are not."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return msgspec.json.encode(value, order="deterministic").decode()
    except (ValueError, OverflowError):
        # Integers beyond 64 bits, which JSON texts may hold and this encoder does not write.
        return repr(value)


class TagCondition(Struct, frozen=True):
    """A compiled condition; `tags` are its names with the kind of value that each must have, if only one will do."""

    expression: Expression
    tags: Mapping[str, Kind | None]

    def accepts(self, tag: str, value: Any) -> bool:
        """Return whether a value of a tag suits the condition."""
        kind = kind_of_value(value)
        needed = self.tags[tag]
        return kind is not None and needed in {None, kind}


class ConditionState(Struct, frozen=True, tag="expression"):
    """The last good value of each tag, and whether the condition was true at the last time that it was known."""

    values: dict[str, Any] = {}
    holds: bool = False


def compile_tag_condition(text: str) -> TagCondition:
    """Compile a condition over tags; raises ExpressionSyntaxError."""
    expression = compile_condition(text, _resolve)
    for node in nodes_of(expression.node):
        if isinstance(node, MemberTest):
            reason = Text.of(
                "{term!r}: a tag holds no list; a rule `occurs` follows the members of a mirror",
                term=expression.part(node),
            )
            raise ExpressionSyntaxError(reason, node.start)
    tags: dict[str, Kind | None] = {tag_of(name): None for name in names_of(expression.node)}
    for node, kind in needed_kinds(expression.node, Kind.TRUTH):
        if isinstance(node, Name):
            tags[tag_of(node)] = kind
    return TagCondition(expression, tags)


def observe_tag(condition: TagCondition, state: ConditionState, tag: str, value: Any) -> ConditionState:
    """Return the state after a sample; an unknown result keeps the state."""
    values = state.values | {tag: value}
    try:
        result = condition.expression.evaluate(values)
    except EvaluationError:
        # Two tags that are compared with each other have values of different kinds: that is not known.
        result = UNKNOWN
    return ConditionState(values, state.holds if result is UNKNOWN else result)


def tag_of(name: Name) -> str:
    """Return the tag of a name: its parts joined by dots, an index in brackets."""
    first, *rest = name.path
    return str(first) + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in rest)


def _resolve(name: Name) -> Evaluate:
    tag = tag_of(name)
    return lambda values: values.get(tag, UNKNOWN)
