"""The simulators run as separate processes."""

import pytest
from click.testing import CliRunner

from edge.features.simulator.cli.sim import sim
from tests.equipment.simulated_process import runs
from tests.local_broker import OwnBroker

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("device", "ready"),
    [
        ("controller", "controller d receives commands on {}/d/commands"),
        ("camera", "camera d publishes results on {}/d/events"),
    ],
)
async def test_a_simulator_reports_when_it_is_ready_and_ends_on_request(
    broker: OwnBroker, unique: str, device: str, ready: str
) -> None:
    await runs(ready.format(unique), device, "--url", broker.url, "--name", "d", "--prefix", unique)


@pytest.mark.parametrize(
    "arguments",
    [
        ("controller", "--name", "d", "--delay", "-1"),
        ("camera", "--name", "d", "--interval", "0"),
    ],
)
def test_number_out_of_range_is_reported(arguments: tuple[str, ...]) -> None:
    answer = CliRunner().invoke(sim, arguments)
    assert answer.exit_code == 2
    assert "is not in the range" in answer.output
