"""Whether a start may be sent a second time, as the settings of a piece of equipment or its kind say."""

import asyncio

import structlog

from edge.config import EquipmentSettings
from edge.errors import Unavailable
from edge.links.backoff import delay
from edge.station.equipment import Begin, Repetition, StationPort

_RETRY_SECONDS = (0.1, 5.0)

_log = structlog.get_logger(__name__)


def chosen_repetition(settings: EquipmentSettings, default: Repetition) -> Repetition:
    """Return what the settings choose, else the default of the kind."""
    return Repetition(settings.repetition) if settings.repetition else default


async def begin_when_available(station: StationPort, command_id: str) -> Begin:
    """Commit the begun mark of a command, as soon as the station can."""
    attempt = 0
    while True:
        try:
            return await station.begin(command_id)
        except Unavailable as error:
            _log.warning("start waits for the station", command=command_id, reason=error.message)
            attempt += 1
            await asyncio.sleep(delay(attempt, *_RETRY_SECONDS))
