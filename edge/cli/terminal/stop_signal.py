"""Waits until a person, or who started us, says that it is enough."""

import asyncio
import contextlib
import signal

from edge.cli.terminal.output import print_text


async def wait_for_stop(ready: str, within: float | None = None) -> None:
    """Say that we are ready, then wait for Ctrl-C or SIGTERM, or at most so many seconds."""
    stop = asyncio.Event()
    # First: who reads that we are ready may stop us at once.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    print_text(ready)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await stop.wait()
