"""The rule kind `limit`: levels with hysteresis and delays."""

from typing import Final

import msgspec
from msgspec.structs import replace

from edge.features.telemetry.model.rule import LimitLevel, LimitRule

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


def observe(rule: LimitRule, state: LimitState, value: float, at: int) -> LimitState:
    """Return the state after a sample. A sample in the hysteresis band keeps the side of the sample before it."""
    levels = dict(state.levels)
    for name, limit in given_limits(rule):
        level = levels.get(name, LevelState())
        inside = _side(rule, name, limit, value, inside=level.inside)
        if inside is not level.inside:
            levels[name] = replace(level, inside=inside, since=at)
    return pass_time(rule, LimitState(levels), at)


def pass_time(rule: LimitRule, state: LimitState, now: int) -> LimitState:
    """Return the state with every level switched whose delay is over."""
    switched = {
        name: replace(level, active=level.inside)
        for name, level in state.levels.items()
        if level.active is not level.inside and now >= _end_of_delay(rule, level)
    }
    return LimitState(state.levels | switched) if switched else state


def next_end(rule: LimitRule, state: LimitState) -> int | None:
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
