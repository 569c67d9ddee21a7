"""A curve with many points is thinned for its picture."""

from hypothesis import given
from hypothesis import strategies as st

from edge.features.traces.curves import thinned


@given(st.lists(st.floats(-1e9, 1e9), max_size=300), st.integers(2, 50))
def test_thinned_curve_keeps_order_and_extremes(values: list[float], most: int) -> None:
    kept = list(thinned(values, most))
    assert len(kept) <= most + 1
    assert [at for at, _ in kept] == sorted({at for at, _ in kept})
    assert all(values[at] == value for at, value in kept)
    if values:
        assert {min(values), max(values)} <= {value for _, value in kept}
