"""The output of site code is JSON within limits, or the node fails."""

import pytest

from edge.features.flows.nodes.kind import NodeError, Output, Withheld
from edge.features.flows.site_output import LARGEST_MEMORY, checked_output, reason_of


def test_json_is_unchanged() -> None:
    output = Output({"a": [1, None, "ü"]}, Withheld.SWITCH, memory=[1.5])
    assert checked_output(output) == output


@pytest.mark.parametrize(
    ("returned", "reason"),
    [
        (None, "the node returned NoneType"),
        (Output(1, withheld="switch"), "unknown withheld"),  # type: ignore[arg-type]
        (Output(float("nan")), "the output is not JSON"),
        (Output(1, memory={1, 2}), "the memory is not JSON"),
        (Output(1, memory="x" * LARGEST_MEMORY), "the memory has more than 65536 bytes"),
    ],
)
def test_output_that_is_not_json_fails_the_node(returned: object, reason: str) -> None:
    with pytest.raises(NodeError, match=reason):
        checked_output(returned)


def test_error_without_a_text_is_reported_by_its_type() -> None:
    class NoTextError(Exception):
        def __str__(self) -> str:
            raise TypeError

    assert reason_of(NoTextError()) == "NoTextError"
    assert reason_of(NodeError("bad")) == "bad"
    assert reason_of(KeyError("x")) == "KeyError: 'x'"
