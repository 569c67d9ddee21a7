"""A stack light and its buttons at GPIO lines."""

from collections.abc import AsyncIterator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AbstractContextManager, AsyncExitStack, asynccontextmanager
from functools import partial
from typing import Any

import structlog

from edge.app.feature import Opened
from edge.app.parts import GatewayParts
from edge.equipment.connected_equipment import ConnectedEquipment, open_connected
from edge.equipment.device import Device, DeviceEvent
from edge.equipment.repetition import permit_start
from edge.features.lamps.alarm_lamps import FollowAlarms, no_alarms, show_alarms
from edge.features.lamps.lines import Lines, open_lines
from edge.features.lamps.settings import StackLightSettings
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.text import Text
from edge.model.cloudevent import new_id
from edge.sfc.signal import Phase
from edge.station.equipment import Command, EquipmentEvent, StationPort
from edge.store import kept_alarms

_log = structlog.get_logger(__name__)

OpenLines = Callable[[str, Mapping[str, int], Mapping[str, int]], AbstractContextManager[Lines]]


def open_stacklight(
    name: str,
    settings: StackLightSettings,
    station: StationPort,
    scopes: Collection[str],
    follow_alarms: FollowAlarms = no_alarms,
    lines_factory: OpenLines = open_lines,
) -> AbstractAsyncContextManager[ConnectedEquipment]:
    """Open the lines for the length of the block, and retry while the chip is unavailable."""

    @asynccontextmanager
    async def connect() -> AsyncIterator[tuple[Device, AsyncIterator[DeviceEvent]]]:
        with lines_factory(settings.chip, settings.lamps, settings.buttons) as lines:
            scope = settings.scope or next(iter(scopes))
            lamps = frozenset(settings.lamps) - frozenset(settings.alarms)
            async with show_alarms(lines, settings.alarms, follow_alarms):
                yield StackLight(name, lamps, lines, station, scope), _presses(lines)

    return open_connected(name, f"chip {settings.chip}", settings.type_ids, station, scopes, connect)


async def _presses(lines: Lines) -> AsyncIterator[DeviceEvent]:
    while True:
        yield {"button": await lines.pressed()}


class StackLight:
    """A stack light with lamps by name, such as `red`. A command switches the lamps that its parameters name."""

    def __init__(self, name: str, lamps: frozenset[str], lines: Lines, station: StationPort, scope: str) -> None:
        self._name = name
        self._lamps = lamps
        self._lines = lines
        self._station = station
        self._scope = scope

    @property
    def problem(self) -> str:
        """Always empty: lamps do not report faults."""
        return ""

    async def catch_up(self) -> None:
        """Return at once: lamps have no results to collect."""

    async def handle_event(self, device_event: DeviceEvent) -> None:
        """Pass a pressed button to the station as an event; drop it while the store is unavailable."""
        event = EquipmentEvent(
            source=f"urn:microdcs-edge:equipment:{self._name}",
            event_id=new_id(),
            type_id=device_event["button"],
            scope=self._scope,
            data={"pressed": True},
        )
        try:
            await self._station.event(event)
        except Unavailable as error:
            _log.warning("button event dropped", equipment=self._name, type=event.type_id, reason=error.message)

    async def perform(self, command: Command) -> Any:
        """Switch the lamps that the parameters name, such as `{"red": true}`; a reset switches all lamps off.

        Other parameters are ignored: they may come from the job order, for example.
        """
        wanted = {name: wish for name, wish in command.parameters.items() if name in self._lamps}
        if command.phase is Phase.RESET:
            wanted = dict.fromkeys(self._lamps, False)
        if not wanted:
            raise Refused("device", Text.of("no parameter names a lamp: {lamps}", lamps=", ".join(sorted(self._lamps))))
        if wrong := [name for name, wish in wanted.items() if not isinstance(wish, bool)]:
            raise Refused("device", Text.of("expected true or false: {wrong}", wrong=", ".join(sorted(wrong))))
        if command.phase is Phase.START:
            await permit_start(self._station, command)
        await self._lines.switch(wanted)
        return wanted

    async def settle(self, command: Command) -> None:
        """Return at once: nothing is kept for a command."""

    async def stop(self, command: Command) -> None:
        """Keep the lamps as they are: a command ends as soon as the lamps are switched."""


async def prepare_lamps(_stack: AsyncExitStack, core: GatewayParts) -> Opened:
    """Return how stack lights follow the kept alarms."""
    return Opened(equipment={"stacklight": (partial(kept_alarms.follow_kept, core.store),)})
