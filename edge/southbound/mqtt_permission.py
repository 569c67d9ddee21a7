"""The permission to work, as a retained message: a tool over MQTT is enabled only while a command needs it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

from edge.errors import Unavailable
from edge.links.mqtt import Message, MqttSession
from edge.sfc.signal import Phase
from edge.station.equipment import Command

_PAYLOADS = {True: b"true", False: b"false"}


class ToolPermission:
    """Publishes whether a command needs the tool; `outstanding` returns the commands without an answer."""

    def __init__(
        self, session: MqttSession, topic: str, outstanding: Callable[[], Awaitable[Sequence[Command]]]
    ) -> None:
        self.topic = f"{topic}/enabled"
        self._session = session
        self._outstanding = outstanding
        self._publishing = asyncio.Lock()

    async def grant(self) -> None:
        """Enable the tool before a start is sent. Raises Unavailable without the broker."""
        async with self._publishing:
            await self._publish(is_needed=True)

    async def update(self) -> None:
        """Enable or disable the tool by the commands without an answer; without the broker the next connection does."""
        with suppress(Unavailable):
            async with self._publishing:
                is_needed = await self._is_needed()
                await self._publish(is_needed=is_needed)
                # Another gateway may have enabled it between the two.
                if not is_needed and await self._is_needed():
                    await self._publish(is_needed=True)

    async def _is_needed(self) -> bool:
        return any(each.phase is Phase.START for each in await self._outstanding())

    async def _publish(self, *, is_needed: bool) -> None:
        await self._session.send(Message(self.topic, _PAYLOADS[is_needed], retain=True))
