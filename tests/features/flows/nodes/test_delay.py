"""A delay node passes its input on after the configured time."""

import pytest

from edge.features.flows.nodes.delay import KIND
from tests.features.flows.nodes.attempts import configure, run


@pytest.mark.parametrize(("seconds", "delay_ms"), [(0, 0), (1.5, 1500), (0.0005, 0), (60, 60_000)])
def test_input_passes_on_after_the_delay(seconds: float, delay_ms: int) -> None:
    output = run(KIND, {"seconds": seconds}, {"a": 1})
    assert (output.value, output.delay_ms) == ({"a": 1}, delay_ms)


@pytest.mark.parametrize("config", [{}, {"seconds": -1}, {"seconds": "1"}, {"seconds": 1e300}])
def test_delay_without_a_valid_duration_is_a_fault(config: dict[str, object]) -> None:
    assert configure(KIND, config)
