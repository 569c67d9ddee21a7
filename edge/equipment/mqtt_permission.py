"""The permission to work, as a retained message: a tool over MQTT is enabled only while a command needs it."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from edge.foundation.errors import Unavailable
from edge.foundation.instant import Clock, now_ms
from edge.links.mqtt import Message, MqttSession
from edge.model.equipment_health import OpenSafing
from edge.sfc.signal import Phase
from edge.station.equipment import Command
from edge.station.safing_tries import SafingTries

_PAYLOADS = {True: b"true", False: b"false"}


class ToolPermission:
    """Publishes whether a command needs the tool; `outstanding` returns the commands without an answer."""

    def __init__(
        self,
        session: MqttSession,
        topic: str,
        outstanding: Callable[[], Awaitable[Sequence[Command]]],
        clock: Clock = now_ms,
    ) -> None:
        self.topic = f"{topic}/enabled"
        self._session = session
        self._outstanding = outstanding
        self._clock = clock
        self._publishing = asyncio.Lock()
        self._tries: SafingTries | None = None
        self._failed = asyncio.Event()

    @property
    def open_release(self) -> OpenSafing | None:
        """The change of the permission that the broker has not confirmed; None when it has."""
        return None if self._tries is None else self._tries.described("release")

    async def grant(self) -> None:
        """Enable the tool before a start is sent. Raises Unavailable without the broker."""
        async with self._publishing:
            await self._publish(is_needed=True)

    async def update(self) -> None:
        """Enable or disable the tool by the commands without an answer; `keep_updating` repeats one that fails."""
        try:
            async with self._publishing:
                is_needed = await self._is_needed()
                await self._publish(is_needed=is_needed)
                # Another gateway may have enabled it between the two.
                if not is_needed and await self._is_needed():
                    await self._publish(is_needed=True)
        except Unavailable as error:
            tries = self._tries or SafingTries(self._clock())
            self._tries = tries.tried(asyncio.get_running_loop().time(), error.message)
            self._failed.set()
        else:
            self._tries = None

    async def keep_updating(self) -> None:
        """Repeat failed updates at the intervals of `SafingTries`, until cancelled."""
        loop = asyncio.get_running_loop()
        while True:
            await self._failed.wait()
            self._failed.clear()
            while self._tries is not None:
                await asyncio.sleep(self._tries.due_s - loop.time())
                if self._tries is not None:
                    await self.update()

    async def _is_needed(self) -> bool:
        return any(command.phase is Phase.START for command in await self._outstanding())

    async def _publish(self, *, is_needed: bool) -> None:
        await self._session.send(Message(self.topic, _PAYLOADS[is_needed], retain=True))
