"""Events of an Open Protocol controller that belong to no command: codes, own tightenings, alarms."""

from collections.abc import Mapping
from typing import Any

import structlog

from edge.equipment.own_events import OwnEvents
from edge.features.openprotocol.conversion import TighteningResult, result_data
from edge.station.equipment import StationPort
from edge.store.dead_letters import RefusedMessage

_log = structlog.get_logger(__name__)


class ToolEvents:
    """Reports what happens at a tool without a command as events of the station, by the settings `events`."""

    def __init__(self, name: str, place: str, type_ids: Mapping[Any, str], station: StationPort, scope: str) -> None:
        self._name = name
        self._place = place
        self._station = station
        self.report = OwnEvents(name, type_ids, station, scope).report

    async def refuse(self, reason: str, data: str) -> None:
        """Record a message that cannot be read."""
        _log.warning("controller message unreadable", equipment=self._name, reason=reason)
        message = RefusedMessage(self._place, "", "", "unreadable", reason, data.encode("latin-1"))
        await self._station.record_refusal(message)

    async def report_result(self, result: TighteningResult, occurrence: str = "") -> bool:
        """Report a result of the operator's own; the same result again is the same event.

        `occurrence` distinguishes a result from others with its number and instant.
        """
        event_id = f"result {result['result']} {result.get('time')} {occurrence}".rstrip()
        return await self.report("result", result_data(result), event_id)
