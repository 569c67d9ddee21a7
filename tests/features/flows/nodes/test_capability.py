"""Cm and Cmk follow from the sample standard deviation and the limits."""

import math
from typing import Any

import pytest

from edge.features.flows.nodes.capability import KIND
from edge.features.flows.nodes.kind import NodeError
from tests.features.flows.nodes.attempts import configure, run

LIMITS = {"lsl": 10, "usl": 20}


def test_capability_of_a_process_off_its_centre() -> None:
    values = [13, 14, 15]
    assert run(KIND, LIMITS, values).value == {
        "n": 3,
        "mean": 14,
        "stddev": 1,
        "cm": pytest.approx(10 / 6),
        "cmk": pytest.approx(4 / 3),
    }


@pytest.mark.parametrize(("values", "mean", "stddev"), [([], None, None), ([15], 15, None), ([15, 15], 15, 0.0)])
def test_too_few_or_equal_values_have_no_capability(
    values: list[float], mean: float | None, stddev: float | None
) -> None:
    expected = {"n": len(values), "mean": mean, "stddev": stddev, "cm": None, "cmk": None}
    assert run(KIND, LIMITS, values).value == expected


def test_values_beyond_the_largest_number_have_no_capability() -> None:
    assert run(KIND, LIMITS, [1.0, math.inf]).value["cmk"] is None
    assert run(KIND, LIMITS, [1e308, 1.7e308]).value["cmk"] is None


def test_value_that_is_not_a_number_fails_the_node() -> None:
    with pytest.raises(NodeError):
        run(KIND, LIMITS, [15, "16"])


@pytest.mark.parametrize("config", [{}, {"lsl": 1}, {"lsl": 2, "usl": 1}, {"lsl": 1, "usl": 1}, {"lsl": "1", "usl": 2}])
def test_limits_must_be_two_numbers_in_order(config: dict[str, Any]) -> None:
    assert configure(KIND, config)
