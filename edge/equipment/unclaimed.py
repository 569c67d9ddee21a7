"""Reports what a device has that no command waits for: late and unsolicited results, and events of its own."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
import structlog

from edge.equipment.device import bounded_text
from edge.foundation.errors import Refused, Unavailable
from edge.model.cloudevent import new_id
from edge.model.instant import milliseconds
from edge.ports.result_trace import FILE_MEMBER, file_error
from edge.station.equipment import EquipmentAnswer, EquipmentEvent, LateResult, NoRoom, StationPort
from edge.store.background import retry_while_unavailable
from edge.store.dead_letters import RefusedMessage

_log = structlog.get_logger(__name__)


AddFiles = Callable[[Any], Awaitable[None]]
"""Adds references to the files of a result to its data."""


async def _add_nothing(_: Any) -> None:
    """Add nothing to the data of a late result."""


class LateResults:
    """Reports late and unsolicited results of the device `name` to the station."""

    def __init__(self, name: str, scope: str, station: StationPort) -> None:
        self._source = f"urn:microdcs-edge:equipment:{name}"
        self._scope = scope
        self._station = station

    async def is_awaited(self, command_id: str) -> bool:
        """Return whether a command waits for its result; True while the store is unavailable."""
        try:
            return await self._station.is_outstanding(command_id)
        except Unavailable:
            return True

    async def was_given_up(self, command_id: str) -> bool:
        """Return whether a command was given up without a result; raises Unavailable without the store."""
        return await self._station.has_open_stop(command_id)

    async def is_stored(self, command_id: str, result_id: str) -> bool:
        """Return whether a result of a command is stored already; raises Unavailable without the store."""
        return await self._station.has_result(command_id, result_id)

    async def report(
        self,
        result_id: str,
        created: datetime | None,
        command_id: str | None,
        data: Any,
        add_files: AddFiles = _add_nothing,
        occurrence: str = "",
    ) -> bool:
        """Pass a result to the station; return False for one that was stored already.

        Raises Unavailable while the station cannot keep it.

        The result of a command resolves an unknown outcome, else the station keeps it as late; one that is stored
        already, by another gateway perhaps, changes nothing. `add_files` adds references to the files of a result.
        `occurrence` distinguishes a result from others with its id and its instant.
        """
        if not command_id:
            await self.keep(result_id, created, None, data, occurrence=occurrence)
        elif not occurrence and await self._station.has_result(command_id, result_id):
            _log.info("result stored already", result=result_id, command=command_id)
            # The work has ended: a stop of it is confirmed.
            await self._station.stopped(command_id, None)
            return False
        else:
            _log.warning("late result", result=result_id, command=command_id)
            await _add(data, add_files)
            await self._station.answer(EquipmentAnswer(command_id, data=data))
        return True

    async def keep(
        self,
        result_id: str,
        created: datetime | None,
        command_id: str | None,
        data: Any,
        add_files: AddFiles = _add_nothing,
        occurrence: str = "",
        reason: str = "",
    ) -> None:
        """Keep a result as late; it confirms no stop. With a `reason` it is not the one that its command waits for.

        Raises Unavailable while the station cannot keep it.
        """
        await _add(data, add_files)
        kind = "late result" if command_id is not None and not reason else "unsolicited result"
        _log.warning(kind, result=result_id, command=command_id, **({"reason": reason} if reason else {}))
        await self._station.late(
            LateResult(
                source=self._source,
                # A device may reuse its result numbers after a reset.
                key=f"{late_key(result_id, created)} {occurrence}".rstrip(),
                scope=self._scope,
                data=data,
                command_id=command_id,
                created_at=None if created is None else milliseconds(created),
                reason=reason,
            )
        )

    async def skip(self, result_id: str, refusal: Refused) -> None:
        """Record a result that cannot be read, for a person to fetch at the device; raises Unavailable."""
        _log.warning("result skipped", result=result_id, reason=refusal.message)
        message = RefusedMessage(self._source, "", result_id, refusal.kind, bounded_text(refusal), b"")
        await self._station.record_refusal(message)

    async def report_surely(
        self,
        result_id: str,
        created: datetime | None,
        command_id: str | None,
        data: Any,
        add_files: AddFiles = _add_nothing,
    ) -> None:
        """Pass a result that the device does not report again to the station; retry while the store is unavailable."""
        report = partial(self.report, result_id, created, command_id, data, add_files)
        await retry_while_unavailable("late results", report)


def late_key(result_id: str, created: datetime | None) -> str:
    """Return the key of a result at its device: its id and the instant when it was made."""
    return f"{result_id} {created.isoformat() if created else ''}".rstrip()


async def _add(data: Any, add_files: AddFiles) -> None:
    try:
        await add_files(data)
    except (Unavailable, Refused) as error:
        # The device may not report the result again: it is kept without its files.
        data[FILE_MEMBER] = file_error(f"the file of a late result was not fetched: {error.message}")


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
            refused = RefusedMessage(self._source, type_id, event.event_id, "no_room", error.text, payload)
            await self._station.record_refusal(refused)
            return False
