"""Events of a device that belong to no command, for actions with `pull_event`."""

from collections.abc import Mapping
from typing import Any

import msgspec

from edge.model.cloudevent import new_id
from edge.station.equipment import EquipmentEvent, NoRoom, StationPort
from edge.store.dead_letters import RefusedMessage


class OwnEvents:
    """Reports what happens at a device without a command as events of the station; `type_ids` are by kind."""

    def __init__(self, name: str, type_ids: Mapping[Any, str], station: StationPort, scope: str) -> None:
        self._source = f"urn:microdcs-edge:equipment:{name}"
        self._type_ids = type_ids
        self._station = station
        self._scope = scope

    async def report(self, kind: str, data: Any, event_id: str = "") -> bool:
        """Report an event if the settings name its type; return whether a job has used it or will.

        An event that is reported again under its id is the same event. One that finds no room is recorded as refused:
        the device does not report it again, and its connection also carries results.
        """
        if (type_id := self._type_ids.get(kind)) is None:
            return False
        event = EquipmentEvent(self._source, event_id or new_id(), type_id, self._scope, data)
        try:
            return await self._station.event(event) is not None
        except NoRoom as error:
            payload = msgspec.json.encode(data)
            refused = RefusedMessage(self._source, type_id, event.event_id, "no_room", error.message, payload)
            await self._station.record_refusal(refused)
            return False
