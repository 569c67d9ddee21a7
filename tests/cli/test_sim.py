"""The simulators as processes of their own."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE

import pytest

from edge.sim.broker import LocalBroker

START = "import sys; from edge.cli.sim import sim; sim(sys.argv[1:])"


@pytest.mark.parametrize(
    ("device", "ready"),
    [
        ("controller", "controller d takes commands on {}/d/commands"),
        ("camera", "camera d offers results on {}/d/events"),
    ],
)
async def test_a_simulator_says_when_it_is_ready_and_ends_when_told(
    broker: LocalBroker, unique: str, device: str, ready: str
) -> None:
    await runs(ready.format(unique), device, "--url", broker.url, "--name", "d", "--prefix", unique)


async def test_a_camera_over_opc_ua_says_where_it_is() -> None:
    await runs("vision eye takes jobs at opc.tcp://127.0.0.1:", "vision", "--name", "eye", "--port", "0")


async def runs(ready: str, *arguments: str) -> None:
    """Start a simulator, wait until it says that it is ready, and end it."""
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", START, *arguments, stdout=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(20):
            while ready not in (line := (await process.stdout.readline()).decode()):
                assert line, "it ended before it was ready"
            process.send_signal(signal.SIGTERM)
            await process.stdout.read()
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
