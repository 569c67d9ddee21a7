"""Ends starts whose answer may have been lost with a former primary of the store, as of unknown outcome."""

import asyncio
from functools import partial

import structlog

from edge.station.equipment import OutcomeUnknown, StationPort
from edge.store.background import retry_while_unavailable

WAIT_S = 10.0
"""Time for answers that the broker still has, and for a work that is about to end."""
_REASON = "its answer may have been lost in a failover of the store"

logger = structlog.get_logger(__name__)


class LostAnswers:
    """The starts of one piece of equipment that were sent in a former generation of the store and must not be repeated.

    The gateway may have acknowledged the answer to such a start when the former primary had stored it. An answer that
    comes later is still the outcome.
    """

    def __init__(self, equipment: str, station: StationPort, wait_s: float = WAIT_S) -> None:
        self._equipment = equipment
        self._station = station
        self._wait_s = wait_s
        self._noted: asyncio.Queue[tuple[str, float]] = asyncio.Queue()

    def note(self, command_id: str) -> None:
        """Watch a start: without an answer its outcome is unknown after a while."""
        self._noted.put_nowait((command_id, asyncio.get_running_loop().time() + self._wait_s))

    async def run(self) -> None:
        """Report unknown outcomes until cancelled."""
        while True:
            command_id, due = await self._noted.get()
            await asyncio.sleep(due - asyncio.get_running_loop().time())
            if await retry_while_unavailable("lost answer", partial(self._station.is_outstanding, command_id)):
                logger.warning("answer missing after a failover", equipment=self._equipment, command=command_id)
                unknown = OutcomeUnknown(command_id, _REASON)
                await retry_while_unavailable("lost answer", partial(self._station.answer, unknown))
