"""Checks recipes in a separate process, one at a time, so that no check slows a job."""

import asyncio
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, Final

import msgspec

from edge.features.page.recipe_check import LENGTH_BYTES, CheckRequest
from edge.features.page.recipe_models import RecipeResult
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text

_MOST_WAITING: Final = 8
_WITHIN_S: Final = 15.0
_IDLE_S: Final = 60.0


class RecipeProcess:
    """A process that checks recipes: started by the first check, ended when none has come for `idle_s` seconds.

    process = RecipeProcess()
    result = await process.check(recipe, active=("tighten",))
    await process.close()
    """

    def __init__(self, within_s: float = _WITHIN_S, idle_s: float = _IDLE_S, most_waiting: int = _MOST_WAITING) -> None:
        self._within_s = within_s
        self._idle_s = idle_s
        self._most_waiting = most_waiting
        self._waiting = 0
        self._turn = asyncio.Lock()
        self._process: asyncio.subprocess.Process | None = None
        self._idle: asyncio.TimerHandle | None = None

    @property
    def pid(self) -> int | None:
        """The id of the process; None while there is none."""
        return self._process.pid if self._process else None

    async def check(self, recipe: Any, active: Sequence[str]) -> RecipeResult:
        """Return the faults and the chart of a recipe.

        Raises Refused while too many checks wait, Unavailable when one takes too long or its process ends.
        """
        if self._waiting >= self._most_waiting:
            raise Refused(
                "busy",
                Text.of("{waiting} recipes wait for their check.", waiting=self._waiting),
                "Try again in a few seconds.",
            )
        request = msgspec.json.encode(CheckRequest(recipe, tuple(active)))
        self._waiting += 1
        try:
            async with self._turn:
                return await self._exchange(request)
        finally:
            self._waiting -= 1

    async def close(self) -> None:
        """End the process."""
        if self._idle is not None:
            self._idle.cancel()
        process, self._process = self._process, None
        if process is not None:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()

    async def _exchange(self, request: bytes) -> RecipeResult:
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(self._within_s):
                process = self._process = self._process or await _start()
                result = await _answer(process, request)
        except TimeoutError:
            await self.close()
            message = Text.of("the check of the recipe took more than {within_s:g} s", within_s=self._within_s)
            raise Unavailable(message, "Check it in a terminal: edge check recipe") from None
        except (OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            raise Unavailable("the process that checks recipes has ended", "Look at the log of the gateway.") from error
        except asyncio.CancelledError:
            # The answer to this request would be taken for that of the next.
            await self.close()
            raise
        self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._end_idle)
        return msgspec.json.decode(result, type=RecipeResult)

    def _end_idle(self) -> None:
        # At the end of its input the process ends by itself.
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


async def _start() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "edge.features.page.recipe_check"),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )


async def _answer(process: asyncio.subprocess.Process, request: bytes) -> bytes:
    if process.stdin is None or process.stdout is None:
        raise BrokenPipeError
    process.stdin.write(len(request).to_bytes(LENGTH_BYTES, "big") + request)
    await process.stdin.drain()
    head = await process.stdout.readexactly(LENGTH_BYTES)
    return await process.stdout.readexactly(int.from_bytes(head, "big"))
