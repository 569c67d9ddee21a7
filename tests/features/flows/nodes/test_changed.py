"""A changed node passes its input on only if it differs from the last value."""

import pytest

from edge.features.flows.nodes.changed import KIND, ChangedConfig, is_same
from edge.features.flows.nodes.kind import Compute, Output, Withheld
from tests.features.flows.nodes.attempts import attempt


def receive(value: object, memory: object) -> Output:
    assert isinstance(KIND.work, Compute)
    return KIND.work.run(ChangedConfig(), attempt({"source": value}, memory=memory))


def test_first_value_is_passed_on_and_stored() -> None:
    assert receive(5, None) == Output(5, memory=[5])


def test_equal_value_is_withheld() -> None:
    assert receive(5, [5.0]) == Output(None, Withheld.UNCHANGED, memory=[5])


def test_null_is_a_value_that_can_change() -> None:
    assert receive(None, None) == Output(None, memory=[None])
    assert receive(None, [None]).withheld is Withheld.UNCHANGED
    assert receive(1, [None]) == Output(1, memory=[1])


@pytest.mark.parametrize(
    ("left", "right", "same"),
    [
        (1, 1.0, True),
        (True, 1, False),
        (0, False, False),
        ([1, [True]], (1, (True,)), True),
        ([1], [True], False),
        ([1], [1, 2], False),
        ({"a": 1}, {"a": 1.0}, True),
        ({"a": 1}, {"a": True}, False),
        ({"a": 1}, {"b": 1}, False),
        ("1", 1, False),
        ([], {}, False),
    ],
)
def test_json_values_are_compared_by_type_and_value(left: object, right: object, *, same: bool) -> None:
    assert is_same(left, right) is same
    assert is_same(right, left) is same
