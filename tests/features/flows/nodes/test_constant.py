"""A constant is its value, also null."""

import pytest

from edge.features.flows.nodes.constant import KIND
from tests.features.flows.nodes.attempts import configure, run


@pytest.mark.parametrize("value", [None, 5, "text", [1, {"a": 2}]])
def test_output_is_the_configured_value(value: object) -> None:
    assert run(KIND, {"value": value}).value == value


def test_value_is_the_only_allowed_and_a_required_member() -> None:
    assert configure(KIND, {"value": None}) == []
    assert configure(KIND, {})
    assert configure(KIND, {"value": 1, "more": 2})
