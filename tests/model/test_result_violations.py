"""A violated limit is stated with what was measured."""

from typing import Any

import pytest

from edge.model.result_violations import violation_texts

LOW = {"measured": {"value": 3.1, "unit": "N·m"}, "low": {"value": 8.0, "unit": "N·m"}, "high": {"value": 12.0}}


@pytest.mark.parametrize(
    ("violation", "text", "german"),
    [
        (LOW, "torque 3.1 N·m below 8 N·m", "Drehmoment 3.1 N·m unter 8 N·m"),
        (LOW | {"measured": 13}, "torque 13 above 12", "Drehmoment 13 über 12"),
        ({"measured": 91, "violation": "High"}, "torque 91 too high", "Drehmoment 91 zu hoch"),
        ({"measured": 1, "violation": "low"}, "torque 1 too low", "Drehmoment 1 zu niedrig"),
        ({"measured": 9.5, "low": 8, "high": 12}, "torque 9.5 out of limits", "Drehmoment 9.5 außerhalb der Grenzen"),
        ("odd", "torque  out of limits", "Drehmoment  außerhalb der Grenzen"),
    ],
)
def test_violation_states_the_value_and_its_limit(violation: Any, text: str, german: str) -> None:
    (only,) = violation_texts({"results": {"1": {"violations": {"torque": violation}}}}, 4)
    assert (str(only), only.in_language("de")) == (text, german)


def test_result_without_violations_and_too_deep_ones_state_nothing() -> None:
    assert list(violation_texts({"torque": 3, "violations": None}, 4)) == []
    assert list(violation_texts([{"violations": {"torque": LOW}}], 1)) == []
    assert list(violation_texts("text", 4)) == []
