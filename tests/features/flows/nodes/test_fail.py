"""A fail node fails its first attempts, then passes its input on."""

import pytest

from edge.features.flows.nodes.fail import KIND, FailConfig
from edge.features.flows.nodes.kind import Compute, NodeError
from tests.features.flows.nodes.attempts import attempt, configure


def work(config: FailConfig, number: int) -> object:
    assert isinstance(KIND.work, Compute)
    return KIND.work.run(config, attempt({"source": 7}, number)).value


@pytest.mark.parametrize("number", [1, 2, 50])
def test_every_attempt_fails_without_a_number_of_times(number: int) -> None:
    with pytest.raises(NodeError, match="broken"):
        work(FailConfig("broken"), number)


def test_attempts_after_the_first_ones_pass_the_input_on() -> None:
    config = FailConfig("broken", 2)
    with pytest.raises(NodeError):
        work(config, 2)
    assert work(config, 3) == 7


def test_negative_number_of_times_is_a_fault() -> None:
    assert configure(KIND, {}) == []
    assert configure(KIND, {"times": -1})
