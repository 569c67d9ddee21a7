"""The kind `baseline`: deviations from the recent window, and the moments of the window."""

import math
import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.telemetry.model.rule import BaselineRule
from edge.features.telemetry.rules.baseline import (
    CHUNK_LENGTH,
    MAX_SAMPLES,
    BaselineState,
    Chunk,
    Moments,
    WindowSample,
    latest_of,
    observe,
    window_length,
    with_window,
    without_window,
)
from tests.features.telemetry.rules.replayed import events

RULE: dict[str, Any] = {"kind": "baseline", "tag": "t", "window_seconds": 10, "sigma": 2, "min_samples": 3}


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=40), st.integers(0, 40))
def test_merged_moments_agree_with_the_statistics_module(values: list[float], cut: int) -> None:
    left, right = Moments(), Moments()
    for value in values[:cut]:
        left = left.add(value)
    for value in values[cut:]:
        right = right.add(value)
    both = left.merge(right)
    assert both.count == len(values)
    assert math.isclose(both.mean, statistics.fmean(values), rel_tol=1e-9, abs_tol=1e-6)
    assert math.isclose(both.deviation, statistics.stdev(values), rel_tol=1e-6, abs_tol=1e-3)


def test_equal_values_have_no_deviation() -> None:
    moments = Moments()
    for _ in range(1000):
        moments = moments.add(0.1).merge(Moments().add(0.1))
    assert moments.deviation == 0


def test_window_is_bounded() -> None:
    full = Chunk(tuple(range(CHUNK_LENGTH)), (1.0,) * CHUNK_LENGTH, Moments(CHUNK_LENGTH, 1.0, 0.0))
    rule = BaselineRule(id="r", tag="t", window_seconds=1e9)
    state = BaselineState(chunks=(full,) * (2 * MAX_SAMPLES // CHUNK_LENGTH))
    for at in (1000, 1001):
        state = observe(rule, state, 1.0, at)
    assert sum(len(chunk.times) for chunk in state.chunks) <= MAX_SAMPLES + 1


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        # Mean 2, s = 1: 4 does not deviate, 4.1 does.
        ([(0, 1), (1000, 2), (2000, 3), (3000, 4)], []),
        ([(0, 1), (1000, 2), (2000, 3), (3000, 4.1)], [(3000, "raised")]),
        # Fewer samples than min_samples, or no deviation at all: not evaluated.
        ([(0, 1), (1000, 2), (3000, 400)], []),
        ([(0, 1), (1000, 1), (2000, 1), (3000, 400)], []),
        # Cleared at the next sample that does not deviate; deviating samples enter the window too.
        ([(0, 1), (1000, 2), (2000, 3), (3000, 9), (4000, 9)], [(3000, "raised"), (4000, "cleared")]),
        # The window (t − 10 s, t) is open at both ends.
        ([(0, 1), (1000, 2), (2000, 3), (10_000, 400)], []),
        ([(0, 1), (1000, 2), (2000, 3), (9_999, 400)], [(9_999, "raised")]),
        ([(0, 1), (1000, 2), (3000, 3), (3000, 400)], []),
        # While too few samples are there, the finding stays as it is.
        ([(0, 1), (1000, 2), (2000, 3), (3000, 9), (60_000, 2)], [(3000, "raised")]),
        # Text is not a sample of a number.
        ([(0, 1), (1000, 2), (2000, "3"), (3000, 9)], []),
    ],
)
def test_deviation_from_the_window_is_raised(samples: list[Any], expected: list[Any]) -> None:
    assert events(RULE, [(at, "t", value) for at, value in samples]) == expected


def test_defaults_are_300_seconds_3_sigma_20_samples() -> None:
    rule = BaselineRule(id="r", tag="t")
    assert (rule.window_seconds, rule.sigma, rule.min_samples) == (300, 3, 20)


def test_trimmed_window_has_the_moments_of_the_remaining_samples() -> None:
    rule, state = BaselineRule(id="r", tag="t", window_seconds=1), BaselineState()
    for at in range(2000):
        state = observe(rule, state, float(at), at)
    left = [value for chunk in state.chunks for value in chunk.values]
    assert left == [float(at) for at in range(1000, 1999)]
    moments = Moments()
    for chunk in state.chunks:
        moments = moments.merge(chunk.moments)
    assert math.isclose(moments.mean, statistics.fmean(left))
    assert math.isclose(moments.deviation, statistics.stdev(left))


def samples_of(state: BaselineState) -> list[WindowSample]:
    found = [pair for chunk in state.chunks for pair in zip(chunk.times, chunk.values, strict=True)]
    return found + [(state.recent_at, value) for value in state.recent]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-5, 5)), min_size=1, max_size=600), st.integers(0, 20))
def test_window_is_restored_from_its_samples(steps: list[tuple[int, int]], count: int) -> None:
    rule = BaselineRule(id="b", severity=1, tag="t", window_seconds=1)
    state, at = BaselineState(), 0
    for step, value in steps:
        at += step * 10
        state = observe(rule, state, float(value), at)
    window = latest_of(state, window_length(state))
    assert window == samples_of(state)
    restored = with_window(without_window(state), window)
    assert latest_of(restored, window_length(restored)) == window
    assert (restored.recent, restored.taken, restored.holds) == (state.recent, len(steps), state.holds)
    assert latest_of(state, count) == window[max(0, len(window) - count) :]
    assert window_length(state) == len(window)
