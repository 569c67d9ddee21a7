"""An attempt has its inputs; with several predecessors the name `input` has no value."""

import pytest

from tests.features.flows.nodes.attempts import attempt


@pytest.mark.parametrize(
    ("inputs", "expected"), [({}, None), ({"a": 5}, 5), ({"a": None}, None), ({"a": 5, "b": 6}, None)]
)
def test_input_is_the_output_of_the_only_predecessor(inputs: dict[str, int | None], expected: int | None) -> None:
    assert attempt(inputs).input == expected
