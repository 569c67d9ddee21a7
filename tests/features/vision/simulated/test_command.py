"""The simulated device runs as a process of its own."""

import pytest
from click.testing import CliRunner

from edge.features.vision.simulated.command import vision
from tests.equipment.simulated_process import runs


@pytest.mark.slow
async def test_device_prints_its_address() -> None:
    await runs("vision eye accepts jobs at opc.tcp://127.0.0.1:", "vision", "--name", "eye", "--port", "0")


def test_number_out_of_range_is_reported() -> None:
    answer = CliRunner().invoke(vision, ["--port", "65536"])
    assert answer.exit_code == 2
    assert "is not in the range" in answer.output
