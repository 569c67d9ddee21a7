"""Whether a start may be sent a second time, according to the settings of the equipment or the default of its kind."""

from functools import partial
from typing import Final

from edge.config import EquipmentSettings
from edge.foundation.errors import Refused
from edge.station.equipment import Begin, Command, Repetition, StationPort
from edge.store.background import retry_while_unavailable

_LOOK_AGAIN_S: Final = 0.1


def chosen_repetition(settings: EquipmentSettings, default: Repetition) -> Repetition:
    """Return the repetition in the settings, else the default of the kind."""
    return Repetition(settings.repetition) if settings.repetition else default


def count_repeated_start(station: StationPort, command: Command) -> None:
    """Count a start that is being sent, if the equipment may have received it before."""
    if command.offered_again or command.begun:
        station.record_repeated_start()


async def permit_start(station: StationPort, command: Command) -> None:
    """Return when a start may be sent, and count it if the equipment may have received it before.

    A start that has waited in memory waits on while the primary of the store is not confirmed.
    """
    await retry_while_unavailable("start", station.permit_start, _LOOK_AGAIN_S)
    count_repeated_start(station, command)


class StartPolicy:
    """Permits the starts of one piece of equipment; with `is_once` a start is never sent twice."""

    def __init__(self, station: StationPort, repetition: Repetition) -> None:
        self.is_once = repetition is Repetition.ONCE
        self._station = station

    async def claim(self, command: Command) -> bool:
        """Return whether a start may be sent; with `is_once`, only right after its begun mark was committed.

        Retries while the store is unavailable. Raises Refused for a command that was stopped in the meantime.
        """
        if not self.is_once:
            return True
        if command.begun:
            return False
        match await retry_while_unavailable("begun mark", partial(self._station.begin, command.command_id)):
            case Begin.NEW:
                return True
            case Begin.AGAIN | Begin.LOST:
                return False
            case Begin.GONE:
                raise Refused("device", "the command was stopped before it was started")

    async def permit(self, command: Command) -> None:
        """Return when a start may be sent, as `permit_start`; one that waits until its gateway ends has not left."""
        try:
            await permit_start(self._station, command)
        except BaseException:
            # Also when cancelled: the start has not left.
            if self.is_once:
                self._station.withhold(command.command_id)
            raise
