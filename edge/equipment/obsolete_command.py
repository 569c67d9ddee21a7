"""Ends the work for a command that the station does not wait for any more: it was answered or stopped elsewhere."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from edge.foundation.errors import EdgeError, Unavailable, unwrap_group
from edge.foundation.task_group import background_task
from edge.sfc.signal import Phase
from edge.station.equipment import Command

CHECK_SECONDS = 10.0
# One check may fall between two commits; a command that ended is never outstanding again.
_CHECKS = 2

IsOutstanding = Callable[[str], Awaitable[bool]]
"""Returns whether a command still waits for an answer; raises Unavailable without the store."""


class ObsoleteCommandError(EdgeError):
    """Error for a command that was answered or stopped elsewhere; there is nothing left to report about it."""

    def __init__(self) -> None:
        super().__init__("the command was answered or stopped elsewhere")


@asynccontextmanager
async def until_obsolete(command: Command, is_outstanding: IsOutstanding, check_s: float) -> AsyncIterator[None]:
    """Cancel the block and raise ObsoleteCommandError when two checks in a row find a start that nothing waits for."""
    if command.phase is not Phase.START:
        yield
        return
    with unwrap_group():
        async with background_task(_watch(command, is_outstanding, check_s), f"watch of {command.command_id}"):
            yield


async def _watch(command: Command, is_outstanding: IsOutstanding, check_s: float) -> None:
    misses = 0
    while misses < _CHECKS:
        await asyncio.sleep(check_s)
        try:
            misses = 0 if await is_outstanding(command.command_id) else misses + 1
        except Unavailable:
            misses = 0
    raise ObsoleteCommandError
