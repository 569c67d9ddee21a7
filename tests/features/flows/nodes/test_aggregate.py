"""An aggregate is one number of a list; without a result it is null."""

import statistics
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.features.flows.nodes.aggregate import KIND, percentile
from edge.features.flows.nodes.kind import NodeError
from tests.features.flows.nodes.attempts import configure, run


def samples(*pairs: tuple[int, float]) -> list[dict[str, Any]]:
    return [{"at": at, "value": value, "quality": "good"} for at, value in pairs]


@pytest.mark.parametrize(
    ("config", "values", "expected"),
    [
        ({"of": "mean"}, [1, 2, 6], 3),
        ({"of": "min"}, [3, 1.5, 2], 1.5),
        ({"of": "max"}, [3, 1.5, 2], 3),
        ({"of": "sum"}, [1, 2], 3),
        ({"of": "sum"}, [0.1] * 10, 1.0),
        ({"of": "sum"}, [], 0),
        ({"of": "count"}, [5, 5], 2),
        ({"of": "count"}, [], 0),
        ({"of": "median"}, [5, 1, 3], 3),
        ({"of": "median"}, [1, 2], 1.5),
        ({"of": "stddev"}, [2, 4, 4, 4, 5, 5, 7, 9], 2.1380899352993947),
        ({"of": "stddev"}, [2], None),
        ({"of": "percentile", "p": 50}, [1, 2], 1.5),
        ({"of": "percentile", "p": 0}, [3, 1], 1),
        ({"of": "percentile", "p": 100}, [3, 1], 3),
        ({"of": "percentile", "p": 25}, [1, 2, 3, 4], 1.75),
        ({"of": "percentile", "p": 25}, [], None),
        ({"of": "mean"}, [], None),
        ({"of": "min"}, [], None),
        ({"of": "median"}, [], None),
        ({"of": "mean"}, samples((0, 1), (1000, 3)), 2),
        ({"of": "rate"}, samples((0, 1), (500, 9), (2000, 5)), 2),
        ({"of": "rate"}, samples((0, 1), (0, 2)), None),
        ({"of": "rate"}, samples((0, 1)), None),
        ({"of": "rate"}, [], None),
    ],
)
def test_result_of_each_function(config: dict[str, Any], values: list[Any], expected: float | None) -> None:
    assert run(KIND, config, values).value == (None if expected is None else pytest.approx(expected))


@pytest.mark.parametrize("of", ["mean", "sum", "count", "median", "rate"])
def test_value_that_is_not_a_number_fails_the_node(of: str) -> None:
    with pytest.raises(NodeError, match="a text"):
        run(KIND, {"of": of}, [1, "2"])


def test_rate_of_plain_numbers_fails_the_node() -> None:
    with pytest.raises(NodeError, match="samples"):
        run(KIND, {"of": "rate"}, [1, 2])


@pytest.mark.parametrize("of", ["mean", "sum"])
def test_result_beyond_the_largest_number_is_unknown(of: str) -> None:
    assert run(KIND, {"of": of}, [1.7e308, 1.7e308]).value is None
    assert run(KIND, {"of": of}, [10**400, 0.5]).value is None


@pytest.mark.parametrize(
    "config",
    [{}, {"of": "mode"}, {"of": "percentile"}, {"of": "mean", "p": 5}, {"of": "percentile", "p": 101}, {"of": 5}],
)
def test_invalid_configuration_of_an_aggregate_is_a_fault(config: dict[str, Any]) -> None:
    assert configure(KIND, config)


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=50))
def test_quartiles_agree_with_the_standard_library(values: list[float]) -> None:
    expected = statistics.quantiles(values, n=4, method="inclusive")
    assert [percentile(values, p) for p in (25, 50, 75)] == pytest.approx(expected, abs=1e-6)
