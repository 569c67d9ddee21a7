"""An expression node is the value of its expression."""

import pytest

from edge.features.flows.nodes.expression import KIND
from tests.features.flows.nodes.attempts import configure, run


def test_expression_is_evaluated_over_named_inputs() -> None:
    assert run(KIND, {"expr": "a + 2 * b"}, a=1, b=3).value == 7
    assert run(KIND, {"expr": "input > 5"}, 6).value is True


@pytest.mark.parametrize(
    "config", [{}, {"expr": 5}, {"expr": ""}, {"expr": "1 +"}, {"expr": "other"}, {"expr": "2 ** 3"}]
)
def test_invalid_expression_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config, "source")
