"""Delays double and end at the longest."""

from hypothesis import given
from hypothesis import strategies as st

from edge.links.backoff import delay


@given(attempt=st.integers(0, 10_000))
def test_a_delay_doubles_up_to_the_longest_and_is_cut_by_half_at_most(attempt: int) -> None:
    full = min(30.0, 0.1 * 2.0 ** min(attempt, 16))
    assert full / 2 <= delay(attempt, 0.1, 30.0) <= full


def test_delays_are_jittered() -> None:
    assert len({delay(3, 0.1, 30.0) for _ in range(20)}) > 1
