"""Aggregates follow OPC 10000-13; a value is valid until the next one."""

import pytest
from asyncua import ua
from hypothesis import given
from hypothesis import strategies as st

from edge.features.telemetry.opcua.history_aggregates import SampleInterval
from edge.ports.sample_lines import Quality, Sample

BAD_NO_DATA = int(ua.StatusCodes.BadNoData)
CALCULATED = 0x401


def interval(
    *samples: tuple[int, object], held: float | None = None, quality: Quality = Quality.GOOD
) -> SampleInterval:
    sample_interval = SampleInterval(0, 100, held)
    for at, value in samples:
        sample_interval.add(Sample(at, "t", value, quality))
    return sample_interval


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [("Average", 4.0), ("TimeAverage", 3.0), ("Minimum", 2.0), ("Maximum", 6.0), ("Count", 2)],
)
def test_aggregate_of_two_values_has_the_specified_result(aggregate: str, expected: float) -> None:
    result = interval((0, 2.0), (75, 6.0)).result(aggregate)
    assert (result.at, result.value, result.status) == (0, expected, CALCULATED)


def test_value_before_the_interval_holds_until_the_first_in_it() -> None:
    assert interval((50, 10.0), held=0.0).result("TimeAverage").value == 5.0
    partial = interval((50, 10.0)).result("TimeAverage")
    assert (partial.value, partial.status) == (10.0, CALCULATED | 0x4)


@pytest.mark.parametrize("aggregate", ["Average", "TimeAverage", "Minimum", "Maximum"])
def test_interval_without_good_numbers_has_no_value(aggregate: str) -> None:
    for empty in (interval(), interval((1, "text")), interval((1, 5.0), quality=Quality.BAD)):
        assert (empty.result(aggregate).value, empty.result(aggregate).status) == (None, BAD_NO_DATA)


def test_bad_value_makes_the_result_uncertain() -> None:
    sample_interval = interval((0, 2.0))
    sample_interval.add(Sample(10, "t", 99.0, Quality.BAD))
    result = sample_interval.result("Maximum")
    assert result.value == 2.0
    assert ua.StatusCode(result.status & 0xFFFF0000).name == "UncertainDataSubNormal"


@given(st.lists(st.tuples(st.integers(0, 99), st.floats(-1e6, 1e6)), min_size=1))
def test_average_is_between_minimum_and_maximum(samples: list[tuple[int, float]]) -> None:
    sample_interval = interval(*sorted(samples))
    least, most = sample_interval.result("Minimum").value, sample_interval.result("Maximum").value
    for aggregate in ("Average", "TimeAverage"):
        value = sample_interval.result(aggregate).value
        # Without a value before its end an interval has no average over time.
        assert value is None or least - 1e-3 <= value <= most + 1e-3
