"""A clock for heartbeats: a test advances it and waits for the next beat."""

import asyncio


class BeatClock:
    """A clock that stands still; each beat reads it."""

    def __init__(self) -> None:
        self.now = 0.0
        self._was_read = asyncio.Event()

    def __call__(self) -> float:
        self._was_read.set()
        return self.now

    async def advance(self, seconds: float) -> None:
        """Advance the clock and wait for the next beat."""
        self.now += seconds
        self._was_read.clear()
        async with asyncio.timeout(60):
            await self._was_read.wait()
