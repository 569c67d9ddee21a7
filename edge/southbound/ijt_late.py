"""Reports the results of a tightening controller that no command waits for."""

from datetime import datetime

import structlog

from edge.southbound.ijt_answer import command_id_of, result_data
from edge.southbound.ijt_schema import Result
from edge.station.equipment import EquipmentAnswer, LateResult, StationPort

_log = structlog.get_logger(__name__)


class LateResults:
    """Reports late and unsolicited results to the station; `source` and the ResultId name each for ever."""

    def __init__(self, source: str, scope: str, station: StationPort) -> None:
        self._source = source
        self._scope = scope
        self._station = station

    async def is_outstanding(self, command_id: str) -> bool:
        """Return whether a command waits for its result."""
        return await self._station.is_outstanding(command_id)

    async def report(self, result: Result) -> None:
        """Pass a result to the station, which keeps it; raises Unavailable while it cannot.

        The result of a command resolves an unknown outcome, else the station keeps it as late.
        """
        meta, command_id = result["ResultMetaData"], command_id_of(result)
        created: datetime | None = meta.get("CreationTime")
        _log.warning("late result" if command_id else "unsolicited result", result=meta["ResultId"], command=command_id)
        if command_id:
            await self._station.answer(EquipmentAnswer(command_id, data=result_data(result)))
            return
        await self._station.late(
            LateResult(
                source=self._source,
                # Numbers of results may begin again after a reset of the controller.
                key=f"{meta['ResultId']} {created.isoformat() if created else ''}".rstrip(),
                scope=self._scope,
                data=result_data(result),
                created_at=round(created.timestamp() * 1000) if created else None,
            )
        )
