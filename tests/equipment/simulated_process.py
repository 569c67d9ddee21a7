"""A simulated device that runs as a process, as `edge sim` starts it."""

import asyncio
import signal
import sys
from asyncio.subprocess import PIPE


async def runs(ready: str, *arguments: str) -> None:
    """Start a simulator, wait until it says that it is ready, and end it."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "edge", "sim", *arguments), stdout=PIPE
    )
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
