"""The simulated controller runs as a process of its own."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE

import click
import pytest

from edge.features.openprotocol.simulated.command import openprotocol
from edge.features.openprotocol.simulated.controller import OpenProtocolFault


@pytest.mark.slow
async def test_controller_prints_its_address_and_ends_on_request() -> None:
    arguments = "-P", "-m", "edge", "sim", "openprotocol", "--name", "eye", "--port", "0"
    process = await asyncio.create_subprocess_exec(sys.executable, *arguments, stdout=PIPE)
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            line = (await process.stdout.readline()).decode()
            assert line.startswith("ready: controller eye accepts clients at 127.0.0.1:")
            process.send_signal(signal.SIGTERM)
            assert await process.wait() == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


def test_every_fault_of_the_controller_can_be_chosen() -> None:
    (option,) = (param for param in openprotocol.params if param.name == "fault")
    assert isinstance(option.type, click.Choice)
    assert list(option.type.choices) == [fault.value for fault in OpenProtocolFault]
