"""Durations are counted in buckets with inclusive bounds."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.foundation.latency import Latency

BOUNDS = (0.001, 0.01, 0.1)


@given(st.lists(st.floats(0, 1) | st.sampled_from(BOUNDS)))
def test_each_bound_counts_the_durations_up_to_the_bound(durations: list[float]) -> None:
    latency = Latency(BOUNDS)
    for duration in durations:
        latency.record(duration)
    assert dict(latency.cumulative()) == {
        bound: sum(value <= bound for value in durations) for bound in (*BOUNDS, float("inf"))
    }
    assert latency.total == pytest.approx(sum(durations))
