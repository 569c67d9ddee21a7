"""A switch passes its input on only when its condition is true."""

import pytest

from edge.features.flows.nodes.kind import NodeError, Output, Withheld
from edge.features.flows.nodes.switch import KIND
from tests.features.flows.nodes.attempts import configure, run


def test_true_condition_passes_the_input_on() -> None:
    assert run(KIND, {"when": "input > 5"}, 6) == Output(6)


@pytest.mark.parametrize("value", [5, None])
def test_false_or_unknown_condition_withholds_the_input(value: object) -> None:
    assert run(KIND, {"when": "input > 5"}, value) == Output(None, Withheld.SWITCH)


def test_condition_that_is_not_boolean_fails_the_node() -> None:
    with pytest.raises(NodeError):
        run(KIND, {"when": "input"}, 6)


def test_condition_with_an_unknown_name_is_a_fault() -> None:
    assert configure(KIND, {"when": "source > 1"}, "source") == []
    assert configure(KIND, {"when": "other > 1"}, "source")
