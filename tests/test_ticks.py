"""Periodic tasks wake at common ticks, independent of their start."""

from hypothesis import given
from hypothesis import strategies as st

from edge.ticks import until_tick


@given(st.floats(0, 1e7), st.sampled_from((0.05, 0.5, 1.0, 2.0, 5.0, 10.0)))
def test_tick_is_within_the_interval_and_common_to_all_tasks(now: float, interval: float) -> None:
    wait = until_tick(now, interval)
    assert 0 < wait <= interval
    assert abs(until_tick(now + wait / 2, interval) + wait / 2 - wait) < 1e-6
