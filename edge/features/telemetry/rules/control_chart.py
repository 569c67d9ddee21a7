"""The rule kind `control_chart`: the eight tests of Nelson (1984) on individual values or on means of subgroups.

L. S. Nelson, The Shewhart Control Chart: Tests for Special Causes, Journal of Quality Technology 16 (1984). A point on
a limit counts as inside.

Cm = (upper - lower) / 6 s, Cmk = min(upper - mean, mean - lower) / 3 s, with the sample standard deviation s.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from edge.features.telemetry.model.rule import Capability, ControlChartRule
from edge.features.telemetry.rules.baseline import Moments


def capability_of(limits: Capability, moments: Moments) -> tuple[float, float]:
    """Return Cm and Cmk; without spread they are infinite, Cmk with the sign of the place."""
    place = min(limits.upper - moments.mean, moments.mean - limits.lower)
    deviation = moments.deviation
    if deviation == 0:
        return math.inf, math.copysign(math.inf, place)
    return (limits.upper - limits.lower) / (6 * deviation), place / (3 * deviation)


def is_capable(limits: Capability, moments: Moments) -> bool:
    """Return whether neither Cm nor Cmk is below its bound."""
    cm, cmk = capability_of(limits, moments)
    return not ((limits.cm is not None and cm < limits.cm) or (limits.cmk is not None and cmk < limits.cmk))


LONGEST_PATTERN: Final = 15
PATTERN_LENGTH: Final = {1: 1, 2: 9, 3: 6, 4: 14, 5: 3, 6: 5, 7: LONGEST_PATTERN, 8: 8}
"""The last points that each test needs."""
MOVING_RANGE_FACTOR: Final = 1.128
"""d2 for a moving range of two values: sigma is the mean moving range divided by it."""


RANGE_MEAN: Final = {2: 1.128, 3: 1.693, 4: 2.059, 5: 2.326, 6: 2.534, 7: 2.704, 8: 2.847, 9: 2.970, 10: 3.078}
"""d2 by the size of a subgroup: its mean range in sigma (ASTM E2587)."""
RANGE_DEVIATION: Final = {2: 0.853, 3: 0.888, 4: 0.880, 5: 0.864, 6: 0.848, 7: 0.833, 8: 0.820, 9: 0.808, 10: 0.797}
"""d3 by the size of a subgroup: the standard deviation of its range in sigma."""


class ControlChartState(msgspec.Struct, frozen=True, tag="control_chart", omit_defaults=True):
    """The learning samples, then mean and sigma, and the last points of a subject.

    `group` are the values of the subgroup that is not complete, `learned_ranges` the ranges of complete ones; `tested`
    are the samples since the last test of the capability.
    """

    learned: tuple[float, ...] = ()
    mean: float | None = None
    sigma: float | None = None
    points: tuple[float, ...] = ()
    holds: bool = False
    group: tuple[float, ...] = ()
    learned_ranges: tuple[float, ...] = ()
    is_out: bool = False
    tested: Moments = Moments()
    is_incapable: bool = False


def observe(rule: ControlChartRule, state: ControlChartState, value: float) -> ControlChartState:
    """Return the state after a sample; it holds when a test finds its pattern, or the capability is too small."""
    if rule.capability is not None:
        state = _test_capability(rule.capability, state, value)
    if rule.subgroup is None:
        state = _chart(rule, state, value, None)
    else:
        group = (*state.group, value)
        state = replace(state, group=group)
        if len(group) == rule.subgroup:
            state = _chart(rule, replace(state, group=()), math.fsum(group) / len(group), max(group) - min(group))
    return replace(state, holds=state.is_out or state.is_incapable)


def _test_capability(limits: Capability, state: ControlChartState, value: float) -> ControlChartState:
    tested = state.tested.add(value)
    if tested.count < limits.of:
        return replace(state, tested=tested)
    return replace(state, tested=Moments(), is_incapable=not is_capable(limits, tested))


def _chart(rule: ControlChartRule, state: ControlChartState, point: float, spread: float | None) -> ControlChartState:
    """Return the state after a point: a value, or the mean of a subgroup with its range as `spread`."""
    mean, sigma = (rule.mean, rule.sigma) if _is_given(rule) else (state.mean, state.sigma)
    if mean is None or sigma is None:
        return _learn(rule, state, point, spread) if rule.learn else state
    if sigma == 0:
        return state
    size = rule.subgroup or 1
    points = (*state.points, point)[-max((PATTERN_LENGTH[index] for index in rule.nelson), default=1) :]
    deviations = tuple(value - mean for value in points)
    is_out = any(NELSON_TESTS[number](points, deviations, sigma / math.sqrt(size)) for number in rule.nelson)
    if spread is not None and 1 in rule.nelson:
        is_out = is_out or abs(spread - RANGE_MEAN[size] * sigma) > 3 * RANGE_DEVIATION[size] * sigma
    return replace(state, points=points, is_out=is_out)


def _is_given(rule: ControlChartRule) -> bool:
    return rule.mean is not None and rule.sigma is not None


def _learn(rule: ControlChartRule, state: ControlChartState, point: float, spread: float | None) -> ControlChartState:
    learned = (*state.learned, point)
    ranges = state.learned_ranges if spread is None else (*state.learned_ranges, spread)
    if len(learned) < (rule.learn or 0):
        return replace(state, learned=learned, learned_ranges=ranges)
    factor = MOVING_RANGE_FACTOR if rule.subgroup is None else RANGE_MEAN[rule.subgroup]
    if rule.subgroup is None:
        ranges = tuple(abs(after - before) for before, after in pairwise(learned))
    sigma = math.fsum(ranges) / len(ranges) / factor
    return replace(state, learned=(), learned_ranges=(), mean=math.fsum(learned) / len(learned), sigma=sigma)


Points: TypeAlias = tuple[float, ...]


def _last(values: Points, count: int) -> Points:
    """Return the last values; none while there are fewer."""
    return values[-count:] if len(values) >= count else ()


def _beyond_three_sigma(_points: Points, deviations: Points, sigma: float) -> bool:
    return abs(deviations[-1]) > 3 * sigma


def _nine_on_one_side(_points: Points, deviations: Points, _sigma: float) -> bool:
    last = _last(deviations, 9)
    return bool(last) and (all(d > 0 for d in last) or all(d < 0 for d in last))


def _six_rising_or_falling(points: Points, _deviations: Points, _sigma: float) -> bool:
    pairs = list(pairwise(_last(points, 6)))
    return bool(pairs) and (all(a < b for a, b in pairs) or all(a > b for a, b in pairs))


def _fourteen_alternating(points: Points, _deviations: Points, _sigma: float) -> bool:
    steps = [(b > a) - (b < a) for a, b in pairwise(_last(points, 14))]
    return bool(steps) and all(a * b < 0 for a, b in pairwise(steps))


def _two_of_three_beyond_two_sigma(_points: Points, deviations: Points, sigma: float) -> bool:
    return _beyond_on_one_side(deviations[-3:], of=3, least=2, bound=2 * sigma)


def _four_of_five_beyond_one_sigma(_points: Points, deviations: Points, sigma: float) -> bool:
    return _beyond_on_one_side(deviations[-5:], of=5, least=4, bound=sigma)


def _beyond_on_one_side(deviations: Points, *, of: int, least: int, bound: float) -> bool:
    above, below = sum(d > bound for d in deviations), sum(d < -bound for d in deviations)
    return len(deviations) == of and max(above, below) >= least


def _fifteen_within_one_sigma(_points: Points, deviations: Points, sigma: float) -> bool:
    return len(deviations) == LONGEST_PATTERN and all(abs(d) <= sigma for d in deviations)


def _eight_beyond_one_sigma_on_both_sides(_points: Points, deviations: Points, sigma: float) -> bool:
    last = _last(deviations, 8)
    return bool(last) and all(abs(d) > sigma for d in last) and min(last) < 0 < max(last)


NELSON_TESTS: Final[dict[int, Callable[[Points, Points, float], bool]]] = {
    1: _beyond_three_sigma,
    2: _nine_on_one_side,
    3: _six_rising_or_falling,
    4: _fourteen_alternating,
    5: _two_of_three_beyond_two_sigma,
    6: _four_of_five_beyond_one_sigma,
    7: _fifteen_within_one_sigma,
    8: _eight_beyond_one_sigma_on_both_sides,
}
"""By Nelson's number: a test of the last points, their deviations from the mean, and sigma."""
