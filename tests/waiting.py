"""Wait for what the store answers."""

import asyncio
import time
from collections.abc import Awaitable, Callable


async def until_async(condition: Callable[[], Awaitable[object]], deadline: float = 60.0) -> None:
    """Wait for a condition that the store answers."""
    end = time.monotonic() + deadline
    while True:
        if await condition():
            return
        assert time.monotonic() < end, "the condition did not come true in time"
        await asyncio.sleep(0.005)
