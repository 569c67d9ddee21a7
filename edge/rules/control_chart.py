"""The rule kind `control_chart`: the eight tests of Nelson (1984) on individual values.

L. S. Nelson, The Shewhart Control Chart: Tests for Special Causes, Journal of Quality Technology 16 (1984). A point on
a limit counts as inside.
"""

import math
from collections.abc import Callable
from itertools import pairwise
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from edge.model.rule import ControlChartRule

LONGEST_PATTERN: Final = 15
MOVING_RANGE_FACTOR: Final = 1.128
"""d2 for a moving range of two values: sigma is the mean moving range divided by it."""


class ControlChartState(msgspec.Struct, frozen=True, tag="control_chart"):
    """The values that are learned from, then mean and sigma, and the last points of a subject."""

    learned: tuple[float, ...] = ()
    mean: float | None = None
    sigma: float | None = None
    points: tuple[float, ...] = ()
    holds: bool = False


def observe(rule: ControlChartRule, state: ControlChartState, value: float) -> ControlChartState:
    """Return the state after a sample; `holds` says whether one of the listed tests finds its pattern."""
    mean, sigma = (rule.mean, rule.sigma) if _is_given(rule) else (state.mean, state.sigma)
    if mean is None or sigma is None:
        return _learn(rule, state, value)
    if sigma == 0:
        return state
    points = (*state.points, value)[-LONGEST_PATTERN:]
    deviations = tuple(point - mean for point in points)
    holds = any(NELSON_TESTS[number](points, deviations, sigma) for number in rule.nelson)
    return replace(state, points=points, holds=holds)


def _is_given(rule: ControlChartRule) -> bool:
    return rule.mean is not None and rule.sigma is not None


def _learn(rule: ControlChartRule, state: ControlChartState, value: float) -> ControlChartState:
    learned = (*state.learned, value)
    if len(learned) < (rule.learn or 0):
        return replace(state, learned=learned)
    ranges = [abs(after - before) for before, after in pairwise(learned)]
    sigma = math.fsum(ranges) / len(ranges) / MOVING_RANGE_FACTOR
    return replace(state, learned=(), mean=math.fsum(learned) / len(learned), sigma=sigma)


Points: TypeAlias = tuple[float, ...]


def _beyond_three_sigma(_points: Points, deviations: Points, sigma: float) -> bool:
    return abs(deviations[-1]) > 3 * sigma


def _nine_on_one_side(_points: Points, deviations: Points, _sigma: float) -> bool:
    last = deviations[-9:]
    return len(last) == 9 and (all(d > 0 for d in last) or all(d < 0 for d in last))  # noqa: PLR2004  Nelson's number


def _six_rising_or_falling(points: Points, _deviations: Points, _sigma: float) -> bool:
    last = points[-6:]
    pairs = list(pairwise(last))
    return len(last) == 6 and (all(a < b for a, b in pairs) or all(a > b for a, b in pairs))  # noqa: PLR2004


def _fourteen_alternating(points: Points, _deviations: Points, _sigma: float) -> bool:
    steps = [(b > a) - (b < a) for a, b in pairwise(points[-14:])]
    return len(steps) == 13 and all(a * b < 0 for a, b in pairwise(steps))  # noqa: PLR2004


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
    last = deviations[-8:]
    outside = all(abs(d) > sigma for d in last)
    return len(last) == 8 and outside and min(last) < 0 < max(last)  # noqa: PLR2004


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
