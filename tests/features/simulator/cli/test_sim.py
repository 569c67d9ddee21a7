"""The simulators run as separate processes."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE
from enum import Enum

import click
import pytest
from click.testing import CliRunner

from edge.features.simulator.broker import LocalBroker
from edge.features.simulator.cli.sim import ijt, sim, vision
from edge.features.simulator.ijt import IjtFault
from edge.features.simulator.vision import VisionFault

pytestmark = pytest.mark.slow

START = "import sys; from edge.features.simulator.cli.sim import sim; sim(sys.argv[1:])"


@pytest.mark.parametrize(
    ("device", "ready"),
    [
        ("controller", "controller d receives commands on {}/d/commands"),
        ("camera", "camera d publishes results on {}/d/events"),
    ],
)
async def test_a_simulator_reports_when_it_is_ready_and_ends_on_request(
    broker: LocalBroker, unique: str, device: str, ready: str
) -> None:
    await runs(ready.format(unique), device, "--url", broker.url, "--name", "d", "--prefix", unique)


@pytest.mark.parametrize(
    ("device", "ready"),
    [
        ("vision", "vision eye accepts jobs at opc.tcp://127.0.0.1:"),
        ("ijt", "joining system eye accepts joinings at opc.tcp://127.0.0.1:"),
    ],
)
async def test_device_prints_its_address(device: str, ready: str) -> None:
    await runs(ready, device, "--name", "eye", "--port", "0")


@pytest.mark.parametrize(("command", "fault"), [(vision, VisionFault), (ijt, IjtFault)])
def test_every_fault_of_a_device_can_be_chosen(command: click.Command, fault: type[Enum]) -> None:
    (option,) = (param for param in command.params if param.name == "fault")
    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices) == [enum.value for enum in fault]


@pytest.mark.parametrize(
    "arguments",
    [
        ("vision", "--port", "65536"),
        ("ijt", "--delay", "-1"),
        ("controller", "--name", "d", "--delay", "-1"),
        ("camera", "--name", "d", "--interval", "0"),
    ],
)
def test_number_out_of_range_is_reported(arguments: tuple[str, ...]) -> None:
    answer = CliRunner().invoke(sim, arguments)
    assert answer.exit_code == 2
    assert "is not in the range" in answer.output


async def runs(ready: str, *arguments: str) -> None:
    """Start a simulator, wait until it says that it is ready, and end it."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", START, *arguments, stdout=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            while ready not in (line := (await process.stdout.readline()).decode()):
                assert line, "it ended before it was ready"
            process.send_signal(signal.SIGTERM)
            await process.stdout.read()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
