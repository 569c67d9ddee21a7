"""A waiting command prints that it is ready and stops on Ctrl-C, SIGTERM or its timeout."""

import asyncio
import os
import signal

import pytest

from edge.cli.terminal.output import wait_for_stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_signal_ends_the_wait(number: signal.Signals, capsys: pytest.CaptureFixture[str]) -> None:
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), number)
    async with asyncio.timeout(60):
        await wait_for_stop("ready")
    assert capsys.readouterr().out == "ready\n"


async def test_wait_ends_after_its_timeout() -> None:
    await wait_for_stop("ready", 0.01)
