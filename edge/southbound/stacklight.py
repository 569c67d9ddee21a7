"""A stack light, and the buttons beside it, at GPIO lines."""

import uuid
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import structlog

from edge.errors import Unavailable
from edge.links.background import beside
from edge.links.gpio import Lines
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentAnswer, EquipmentEvent, Station

_log = structlog.get_logger(__name__)


@asynccontextmanager
async def open_stacklight(
    name: str, lamps: frozenset[str], buttons: Mapping[str, str], lines: Lines, station: Station, scope: str
) -> AsyncIterator["StackLight"]:
    """Switch the lamps of these names, and tell the station of a button by the event type that it stands for."""
    light = StackLight(name, lamps, buttons, lines, station, scope)
    async with beside(light.watch_buttons(), f"buttons of {name}"):
        yield light


class StackLight:
    """Lamps by name, such as `red`. A command switches those that its parameters name, and is done."""

    def __init__(
        self, name: str, lamps: frozenset[str], buttons: Mapping[str, str], lines: Lines, station: Station, scope: str
    ) -> None:
        self.name = name
        self._lamps = lamps
        self._buttons = buttons
        self._lines = lines
        self._station = station
        self._scope = scope

    @property
    def connected(self) -> bool:
        """Whether it is there: lines that the kernel has given us stay ours."""
        return True

    async def send(self, command: Command) -> None:
        """Switch lamps: `start` as the parameters say, such as `{"red": true}`, `reset` all of them off.

        What names no lamp is another's, the job order's for instance. Raises Unavailable.
        """
        told = {name: wish for name, wish in command.parameters.items() if name in self._lamps}
        match command.phase, [name for name, wish in told.items() if not isinstance(wish, bool)]:
            case Phase.RESET, _:
                await self._switch(command, dict.fromkeys(self._lamps, False))
            case _, [] if told:
                await self._switch(command, told)
            case _, []:
                await self._refuse(command, f"no parameter names a lamp: {', '.join(sorted(self._lamps))}")
            case _, wrong:
                await self._refuse(command, f"expected true or false: {', '.join(sorted(wrong))}")

    async def stop(self, command: Command) -> None:
        """Leave the lamps as they are: a command was done when it was sent."""

    async def watch_buttons(self) -> None:
        """Tell the station of each press; one that comes while the store is away has to be repeated."""
        while True:
            button = await self._lines.pressed()
            event = EquipmentEvent(
                source=f"urn:microdcs-edge:equipment:{self.name}",
                event_id=str(uuid.uuid4()),
                type_id=self._buttons[button],
                scope=self._scope,
                data={"button": button},
            )
            try:
                await self._station.event(event)
            except Unavailable as error:
                _log.warning("button pressed in vain", equipment=self.name, button=button, reason=error.message)

    async def _switch(self, command: Command, lamps: Mapping[str, bool]) -> None:
        self._lines.switch(lamps)
        await self._station.answer(EquipmentAnswer(command.command_id, dict(lamps)))

    async def _refuse(self, command: Command, error: str) -> None:
        await self._station.answer(EquipmentAnswer(command.command_id, error=error))
