"""Waits for a stop signal or for a time limit."""

import asyncio
import contextlib
import signal

from edge.cli.terminal.output import print_text


async def wait_for_stop(ready: str, within: float | None = None) -> None:
    """Print the ready line, then wait for Ctrl-C or SIGTERM, at most `within` seconds."""
    stop = asyncio.Event()
    # Before the ready line: a reader of that line may send the signal at once.
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    print_text(ready)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(within):
            await stop.wait()
