"""Events of a joining system that belong to no command: joinings of the operator's own, errors."""

from collections.abc import Mapping
from typing import Any

from edge.model.cloudevent import new_id
from edge.southbound.ijt_conversion import result_data
from edge.southbound.ijt_schema import Result
from edge.station.equipment import EquipmentEvent, StationPort


class JoiningEvents:
    """Reports what happens at a tool without a command as events of the station, by the settings `events`."""

    def __init__(self, name: str, type_ids: Mapping[Any, str], station: StationPort, scope: str) -> None:
        self._source = f"urn:microdcs-edge:equipment:{name}"
        self._type_ids = type_ids
        self._station = station
        self._scope = scope

    async def report_own(self, result: Result) -> bool:
        """Report a joining of the operator's own, the same one as the same event; return whether a job has used it."""
        return await self._report("result", result_data(result), f"result {result['ResultMetaData']['ResultId']}")

    async def report_error(self, message: str) -> None:
        """Report an error that stops the tool."""
        await self._report("error", {"message": message}, new_id())

    async def _report(self, kind: str, data: Any, event_id: str) -> bool:
        if (type_id := self._type_ids.get(kind)) is None:
            return False
        event = EquipmentEvent(self._source, event_id, type_id, self._scope, data)
        return await self._station.event(event) is not None
