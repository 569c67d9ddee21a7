"""Events of an Open Protocol controller that belong to no command: codes, own tightenings, alarms."""

from collections.abc import Mapping
from typing import Any

import structlog

from edge.model.cloudevent import new_id
from edge.southbound.openprotocol_conversion import TighteningResult, result_data
from edge.station.equipment import EquipmentEvent, StationPort
from edge.store.refused import RefusedMessage

_log = structlog.get_logger(__name__)


class ToolEvents:
    """Reports what happens at a tool without a command as events of the station, by the settings `events`."""

    def __init__(self, name: str, place: str, type_ids: Mapping[Any, str], station: StationPort, scope: str) -> None:
        self._name = name
        self._place = place
        self._type_ids = type_ids
        self._station = station
        self._scope = scope

    async def report(self, kind: str, data: Any, event_id: str = "") -> bool:
        """Report an event if the settings name its type; return whether a job has used it or will."""
        if (type_id := self._type_ids.get(kind)) is None:
            return False
        source = f"urn:microdcs-edge:equipment:{self._name}"
        event = EquipmentEvent(source, event_id or new_id(), type_id, self._scope, data)
        return await self._station.event(event) is not None

    async def refuse(self, reason: str, data: str) -> None:
        """Record a message that cannot be read."""
        _log.warning("controller message unreadable", equipment=self._name, reason=reason)
        message = RefusedMessage(self._place, "", "", "unreadable", reason, data.encode("latin-1"))
        await self._station.record_refusal(message)

    async def report_result(self, result: TighteningResult) -> bool:
        """Report a result of the operator's own; the same result again is the same event."""
        return await self.report("result", result_data(result), f"result {result['result']} {result.get('time')}")
