"""Waits for a condition that a message of a device makes true."""

import asyncio
from collections.abc import Callable


class ChangeSignal:
    """Wakes the tasks that wait for a condition: `set` it after each change that may make one true."""

    def __init__(self) -> None:
        self._changed = asyncio.Event()

    def set(self) -> None:
        """Wake every waiting task to check its condition."""
        self._changed.set()

    async def wait_until(self, condition: Callable[[], bool], seconds: float | None) -> bool:
        """Wait at most `seconds` for a condition, without a limit for None; return whether it is true."""
        try:
            async with asyncio.timeout(seconds):
                while not condition():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True
