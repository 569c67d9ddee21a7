"""Shows alarms with lamps: each lamp stands for the alarms from its severity on up to that of the next lamp."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping
from enum import Enum, auto
from functools import partial
from typing import Final, TypeAlias

from edge.features.lamps.lines import Lines
from edge.foundation.task_group import background_task
from edge.ports.alarm import Alarm, AlarmState
from edge.store.background import restart_on_outage

FLASH_S: Final = 0.5
"""How long a flashing lamp is on, and how long off."""

FollowAlarms: TypeAlias = Callable[[], AsyncIterator[Collection[Alarm]]]
"""Yields all kept alarms now and after each change; raises Unavailable without the store."""


async def no_alarms() -> AsyncIterator[Collection[Alarm]]:
    """Yield that there are no alarms, and wait."""
    yield ()
    await asyncio.Event().wait()


class LampState(Enum):
    """What a lamp shows."""

    OFF = auto()
    ON = auto()
    """An alarm holds; people have acknowledged all."""
    FLASHING = auto()
    """An alarm waits for a person."""


_SHOWN: Final = {
    AlarmState.UNACKNOWLEDGED: LampState.FLASHING,
    AlarmState.LATCHED_UNACKNOWLEDGED: LampState.FLASHING,
    AlarmState.RETURNED_UNACKNOWLEDGED: LampState.FLASHING,
    AlarmState.ACKNOWLEDGED: LampState.ON,
    AlarmState.LATCHED_ACKNOWLEDGED: LampState.ON,
}
"""Alarms that are silenced, or normal, show nothing."""


def lamp_states(alarms: Iterable[Alarm], severities: Mapping[str, int]) -> dict[str, LampState]:
    """Return what each lamp shows; `severities` are the lowest ones of the lamps."""
    states = dict.fromkeys(severities, LampState.OFF)
    for alarm in alarms:
        lamp_state = _SHOWN.get(alarm.state)
        reached = [lamp for lamp, severity in severities.items() if alarm.severity >= severity]
        if lamp_state is None or not reached:
            continue
        lamp = max(reached, key=severities.__getitem__)
        if states[lamp] is not LampState.FLASHING:
            states[lamp] = lamp_state
    return states


@contextlib.asynccontextmanager
async def show_alarms(
    lines: Lines, severities: Mapping[str, int], follow: FollowAlarms, flash_s: float = FLASH_S
) -> AsyncIterator[None]:
    """Switch the lamps as the alarms are, for the length of the block; during an outage of the store they stay."""
    if not severities:
        yield
        return
    lamps = AlarmLamps(lines, severities, flash_s)
    following = restart_on_outage("stack light", partial(lamps.follow, follow))
    async with background_task(following, "alarms of the lamps"), background_task(lamps.switch(), "lamps of alarms"):
        yield


class AlarmLamps:
    """The lamps that show alarms, and what they show."""

    def __init__(self, lines: Lines, severities: Mapping[str, int], flash_s: float) -> None:
        self._lines = lines
        self._severities = severities
        self._flash_s = flash_s
        self._states = dict.fromkeys(severities, LampState.OFF)
        self._changed = asyncio.Event()

    async def follow(self, follow: FollowAlarms) -> None:
        """Receive the alarms as they change, until cancelled. Raises Unavailable without the store."""
        async for alarms in follow():
            self._states = lamp_states(alarms, self._severities)
            self._changed.set()

    async def switch(self) -> None:
        """Switch the lamps until cancelled. Raises Unavailable when the lines are gone."""
        lit, is_bright = dict.fromkeys(self._states, False), True
        while True:
            wanted = {
                lamp: state is LampState.ON or (is_bright and state is LampState.FLASHING)
                for lamp, state in self._states.items()
            }
            if wanted != lit:
                await self._lines.switch(wanted)
                lit = wanted
            flashes = LampState.FLASHING in self._states.values()
            try:
                async with asyncio.timeout(self._flash_s if flashes else None):
                    await self._changed.wait()
            except TimeoutError:
                is_bright = not is_bright
            else:
                self._changed.clear()
                is_bright = True
