"""The result of an action in one line, for a table of any width."""

from typing import Any

import pytest

from edge.cli.jobs.result_text import result_text

BOLT = {"evaluation": "OK", "torque": {"value": 85.2, "unit": "N·m"}, "angle": {"value": 42, "unit": "°"}}
BATCH = BOLT | {"counts": {"ok": 2, "not_ok": 0}, "results": {"1": BOLT, "2": BOLT}}


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        (BOLT, "OK, torque 85.2 N·m, angle 42 °"),
        (BATCH, "OK, torque 85.2 N·m, angle 42 °, 2 parts"),
        ({"done": True, "left": [1, 2]}, '{"done": true, "left": [1, 2]}'),
        ("a text", "a text"),
        (None, ""),
    ],
    ids=["bolt", "batch", "data", "text", "none"],
)
def test_result_is_a_line_of_words(result: Any, expected: str) -> None:
    assert result_text(result) == expected
