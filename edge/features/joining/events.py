"""Events of a joining system that belong to no command: joinings of the operator's own, errors."""

from collections.abc import Mapping
from typing import Any

from edge.equipment.own_events import OwnEvents
from edge.features.joining.conversion import result_data
from edge.features.joining.schema import Result
from edge.station.equipment import StationPort


class JoiningEvents:
    """Reports what happens at a tool without a command as events of the station, by the settings `events`."""

    def __init__(self, name: str, type_ids: Mapping[Any, str], station: StationPort, scope: str) -> None:
        self._events = OwnEvents(name, type_ids, station, scope)

    async def report_own(self, result: Result, occurrence: str = "") -> bool:
        """Report a joining of the operator's own, the same one as the same event; return whether a job has used it.

        `occurrence` distinguishes a result from others with its id.
        """
        event_id = f"result {result['ResultMetaData']['ResultId']} {occurrence}".rstrip()
        return await self._events.report("result", result_data(result), event_id)

    async def report_error(self, message: str) -> None:
        """Report an error that stops the tool."""
        await self._events.report("error", {"message": message})
