"""The kind `control_chart`: Nelson's eight tests, learning, and a published series."""

import math
from typing import Any

import pytest

from edge.features.telemetry.model.rule import Capability, ControlChartRule
from edge.features.telemetry.rules.baseline import Moments
from edge.features.telemetry.rules.control_chart import (
    NELSON_TESTS,
    ControlChartState,
    capability_of,
    is_capable,
    observe,
)
from tests.features.telemetry.rules.replayed import events


def chart(*nelson: int, **members: Any) -> dict[str, Any]:
    return {"kind": "control_chart", "tag": "t", "nelson": list(nelson), "mean": 0, "sigma": 1} | members


def samples(values: list[float]) -> list[Any]:
    return [(at, "t", value) for at, value in enumerate(values)]


ALTERNATING = [0.5 if n % 2 else -0.5 for n in range(14)]


@pytest.mark.parametrize(
    ("number", "values", "found"),
    [
        (1, [3.0], False),
        (1, [3.01], True),
        (1, [-3.01], True),
        (2, [0.1] * 9, True),
        (2, [0.1] * 8, False),
        (2, [0.1] * 8 + [0.0], False),
        (2, [-0.1] * 9, True),
        (2, [0.1] * 4 + [-0.1] + [0.1] * 4, False),
        (3, [0, 1, 2, 3, 4, 5], True),
        (3, [5, 4, 3, 2, 1, 0], True),
        (3, [0, 1, 2, 3, 4], False),
        (3, [0, 1, 2, 2, 3, 4], False),
        (4, ALTERNATING, True),
        (4, ALTERNATING[:13], False),
        (4, [*ALTERNATING[:7], ALTERNATING[6], *ALTERNATING[7:]], False),
        (5, [2.1, 0, 2.1], True),
        (5, [2.1, 2.1, 0], True),
        (5, [2.1, 2.1], False),
        (5, [2.0, 0, 2.1], False),
        (5, [2.1, 0, -2.1], False),
        (6, [1.1, 1.1, 0, 1.1, 1.1], True),
        (6, [1.1, 1.1, 1.1, 1.1, 0], True),
        (6, [1.1, 1.1, 1.1, 1.1], False),
        (6, [1.1, 1.1, 0, 1.1, -1.1], False),
        (7, [1.0, -1.0, 0.5] * 5, True),
        (7, [0.5] * 14, False),
        (7, [0.5] * 14 + [1.01], False),
        (8, [1.1, -1.1] * 4, True),
        (8, [1.1] * 8, False),
        (8, [1.1, -1.1] * 3 + [1.1, 1.0], False),
        (8, [1.1, -1.1] * 3 + [1.1], False),
    ],
)
def test_each_nelson_pattern_is_found(number: int, values: list[float], found: bool) -> None:  # noqa: FBT001 - a parameter
    points = tuple(map(float, values[-15:]))
    assert NELSON_TESTS[number](points, points, 1.0) is found
    assert bool(events(chart(number), samples(values))) is found


def test_finding_is_cleared_by_the_first_point_without_a_pattern() -> None:
    assert events(chart(1, 2), samples([4, 4, 0.5, -0.5, -4])) == [(0, "raised"), (2, "cleared"), (4, "raised")]


def test_without_list_all_eight_tests_apply() -> None:
    rule = chart()
    del rule["nelson"]
    assert events(rule, samples([0.1] * 9)) == [(8, "raised")]
    assert ControlChartRule(id="r", tag="t").nelson == (1, 2, 3, 4, 5, 6, 7, 8)


def test_mean_and_sigma_are_learned_from_the_first_samples() -> None:
    rule = ControlChartRule(id="r", tag="t", learn=4, nelson=(1,))
    state = ControlChartState()
    for value in (10.0, 12.0, 10.0, 12.0):
        state = observe(rule, state, value)
    # Mean moving range 2: sigma is 2 / 1.128.
    assert state.mean == 11
    assert state.sigma == pytest.approx(1.7730496)
    assert state.points == ()
    found = chart(1, learn=4)
    del found["mean"]
    assert events(found, samples([10, 12, 10, 12, 16.3, 16.4])) == [(5, "raised")]


def test_points_used_for_learning_belong_to_no_pattern() -> None:
    rule = chart(2, learn=9)
    del rule["sigma"]
    values = [float(n % 2) for n in range(9)] + [5.0] * 9
    assert events(rule, samples(values)) == [(17, "raised")]


def test_no_pattern_is_evaluated_when_sigma_is_zero() -> None:
    assert events(chart(1, sigma=0), samples([5, 6])) == []
    rule = chart(1, learn=2)
    del rule["mean"]
    assert events(rule, samples([5, 5, 600])) == []


def test_findings_match_the_published_series_of_the_nist_handbook() -> None:
    """NIST/SEMATECH e-Handbook 6.3.2.2, individuals chart of flow rates: mean 49.956, mean moving range 1.878."""
    flow = [49.6, 47.6, 49.9, 51.3, 47.8, 51.2, 52.6, 52.4, 53.6, 52.1]
    rule, state = ControlChartRule(id="r", tag="t", learn=10, nelson=(1,)), ControlChartState()
    for value in flow:
        state = observe(rule, state, value)
    assert state.mean == pytest.approx(50.81)
    assert state.sigma == pytest.approx(1.8778 / 1.128, abs=1e-4)
    assert events(chart(1, mean=state.mean, sigma=state.sigma), samples(flow)) == []


def test_text_and_boolean_values_are_not_points() -> None:
    mixed: list[Any] = [0.1] * 4 + ["x", True] + [0.1] * 5
    assert events(chart(2), samples(mixed)) == [(10, "raised")]


# Factors for control limits, Montgomery, Introduction to Statistical Quality Control, appendix VI: A2, D3, D4.
PUBLISHED = {
    2: (1.880, 0, 3.267),
    3: (1.023, 0, 2.575),
    4: (0.729, 0, 2.282),
    5: (0.577, 0, 2.115),
    6: (0.483, 0, 2.004),
    7: (0.419, 0.076, 1.924),
    8: (0.373, 0.136, 1.864),
    9: (0.337, 0.184, 1.816),
    10: (0.308, 0.223, 1.777),
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_limits_of_subgroups_use_the_published_factors(size: int) -> None:
    mean_factor, low_factor, high_factor = PUBLISHED[size]
    rule, state = ControlChartRule(id="r", tag="t", learn=3, nelson=(1,), subgroup=size), ControlChartState()
    # Every subgroup has the mean 50 and the range 2.
    for _ in range(3):
        for value in (49.0, 51.0, *[50.0] * (size - 2)):
            state = observe(rule, state, value)
    assert state.mean == 50
    assert state.sigma is not None
    assert 3 * state.sigma / size**0.5 == pytest.approx(2 * mean_factor, abs=2e-3)

    def is_out(center: float, spread: float) -> bool:
        at = state
        for value in (center - spread / 2, center + spread / 2, *[center] * (size - 2)):
            at = observe(rule, at, value)
        return at.holds

    assert [is_out(50 + 2 * mean_factor + d, 2) for d in (-0.01, 0.01)] == [False, True]
    assert [is_out(50 - 2 * mean_factor + d, 2) for d in (-0.01, 0.01)] == [True, False]
    assert [is_out(50, 2 * high_factor + d) for d in (-0.01, 0.01)] == [False, True]
    if low_factor:
        assert [is_out(50, 2 * low_factor + d) for d in (-0.01, 0.01)] == [True, False]


def test_complete_subgroup_becomes_a_point() -> None:
    rule = chart(1, subgroup=4)
    # The mean of the last four is 1.75, more than 3 sigma / 2.
    assert events(rule, samples([0, 0, 0, 0, 1.75, 1.75, 1.75, 1.75, 0, 0, 0, 0])) == [(7, "raised"), (11, "cleared")]


def test_capability_is_tested_after_the_required_number_of_samples() -> None:
    capability = {"lower": 8, "upper": 20, "cmk": 1.0, "of": 3}
    rule = chart(capability=capability, nelson=[])
    del rule["mean"], rule["sigma"]
    values = [14.0, 16.0, 18.0, 13.0, 14.0, 15.0, 1.0]
    assert events(rule, samples(values)) == [(2, "raised"), (5, "cleared")]


def moments(*values: float) -> Moments:
    found = Moments()
    for value in values:
        found = found.add(value)
    return found


def test_capability_agrees_with_the_handbook_example() -> None:
    """Limits 8 and 20, mean 16, standard deviation 2: Cp = 1.0, Cpk = 0.6667."""
    cm, cmk = capability_of(Capability(8, 20), moments(14, 16, 18))
    assert cm == pytest.approx(1.0)
    assert cmk == pytest.approx(0.6667, abs=1e-4)


@pytest.mark.parametrize(
    ("cm", "cmk", "capable"),
    [(1.0, None, True), (1.01, None, False), (None, 0.66, True), (None, 0.67, False), (1.0, 0.67, False)],
)
def test_capability_below_a_bound_is_reported(cm: float | None, cmk: float | None, capable: bool) -> None:  # noqa: FBT001 - a parameter
    assert is_capable(Capability(8, 20, cm=cm, cmk=cmk), moments(14, 16, 18)) is capable


def test_capability_of_values_without_spread_is_infinite() -> None:
    assert capability_of(Capability(8, 20), moments(9, 9)) == (math.inf, math.inf)
    assert capability_of(Capability(8, 20), moments(21, 21)) == (math.inf, -math.inf)
    assert not is_capable(Capability(8, 20, cmk=0), moments(21, 21))
