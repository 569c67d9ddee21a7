"""Asks a separate process about recipes, one question at a time, so that no check slows a job."""

import asyncio
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, Final

from edge.foundation.errors import LocalFault, Refused
from edge.foundation.text import Text

LENGTH_BYTES: Final = 4
"""Each request and each result begins with its length, most significant byte first."""
_MOST_WAITING: Final = 8
_WITHIN_S: Final = 15.0
_IDLE_S: Final = 60.0
_ADVICE: Final = "A terminal has no time limit: edge check recipe, edge recipes test, edge simulate"


class RecipeProcess:
    """A process that answers requests: started by the first one, ended when none has come for `idle_s` seconds.

    `module` is run as a program; it calls `serve`.

    process = RecipeProcess("edge.features.page.recipe_check")
    result = await process.ask(request)
    await process.close()
    """

    def __init__(
        self, module: str, within_s: float = _WITHIN_S, idle_s: float = _IDLE_S, most_waiting: int = _MOST_WAITING
    ) -> None:
        self._module = module
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

    async def ask(self, request: bytes) -> bytes:
        """Return the answer to a request.

        Raises Refused while too many requests wait, LocalFault when one takes too long or its process ends.
        """
        if self._waiting >= self._most_waiting:
            raise Refused(
                "busy",
                Text.of("{waiting} requests about recipes wait.", waiting=self._waiting),
                "Try again in a few seconds.",
            )
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

    async def _exchange(self, request: bytes) -> bytes:
        if self._idle is not None:
            self._idle.cancel()
        try:
            async with asyncio.timeout(self._within_s):
                process = self._process = self._process or await _start(self._module)
                result = await _answer(process, request)
        except TimeoutError:
            await self.close()
            message = Text.of(
                "the work on the recipe took more than {within_s:g} s and was stopped", within_s=self._within_s
            )
            raise LocalFault(message, _ADVICE) from None
        except (OSError, asyncio.IncompleteReadError) as error:
            await self.close()
            raise LocalFault("the process that checks recipes has ended", "Look at the log of the gateway.") from error
        except asyncio.CancelledError:
            # The answer to this request would be taken for that of the next.
            await self.close()
            raise
        self._idle = asyncio.get_running_loop().call_later(self._idle_s, self._end_idle)
        return result

    def _end_idle(self) -> None:
        # At the end of its input the process ends by itself.
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()
        self._process = None


async def _start(module: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )


async def _answer(process: asyncio.subprocess.Process, request: bytes) -> bytes:
    # Of a process that has ended uvloop has closed the pipe; to write to it would be a RuntimeError.
    if process.stdin is None or process.stdout is None or process.stdin.is_closing():
        raise BrokenPipeError
    process.stdin.write(len(request).to_bytes(LENGTH_BYTES, "big") + request)
    await process.stdin.drain()
    head = await process.stdout.readexactly(LENGTH_BYTES)
    return await process.stdout.readexactly(int.from_bytes(head, "big"))


def serve(requests: BinaryIO, results: BinaryIO, answer: Callable[[bytes], bytes]) -> None:
    """Answer each request until there are no more: the other end of the process."""
    while len(head := requests.read(LENGTH_BYTES)) == LENGTH_BYTES:
        result = answer(requests.read(int.from_bytes(head, "big")))
        results.write(len(result).to_bytes(LENGTH_BYTES, "big") + result)
        results.flush()
