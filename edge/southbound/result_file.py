"""Fetches the file that an OPC UA device offers with a result (ResultTransfer), such as an image."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec

from edge.links.opcua import ClientSession, Node
from edge.links.opcua_file import TransferTimes, read_temporary_file
from edge.model.result_trace import FILE_MEMBER, FileReference
from edge.station.equipment import Command, StationPort

_MOST_TRIES = 2
_TIMES = TransferTimes()


class ResultFileReader:
    """Reads the files of the results of a device on one connection; `tries`, by command, counts beyond it.

    `transfer` is the ResultTransfer of the device, None where it has none.
    """

    def __init__(
        self,
        session: ClientSession,
        transfer: Node | None,
        station: StationPort,
        tries: Counter[str],
        times: TransferTimes = _TIMES,
    ) -> None:
        self._session = session
        self._transfer = transfer
        self._station = station
        self._tries = tries
        self._times = times

    async def add_file(self, command: Command, data: Mapping[str, Any], options: Any) -> dict[str, Any]:
        """Return the data of a result with a reference to its file, or with the reason why it is not stored.

        Raises Unavailable when the connection is lost; a command whose transfer loses it again has no file.
        """
        return {**data, FILE_MEMBER: await self._fetch(command, options)}

    async def _fetch(self, command: Command, options: Any) -> Mapping[str, Any]:
        if self._transfer is None:
            return _missing("the device announces a file, and has no ResultTransfer")
        if self._tries[command.command_id] >= _MOST_TRIES:
            del self._tries[command.command_id]
            return _missing("the connection was lost at each transfer of the file")
        self._tries[command.command_id] += 1
        parts = read_temporary_file(self._session, self._transfer, options, self._times)
        reference = await self._station.store_file(command.command_id, parts)
        del self._tries[command.command_id]
        return reference


async def find_transfer(session: ClientSession, management: Node | None) -> Node | None:
    """Return the ResultTransfer of a result management; None where there is none."""
    return (await session.children(management)).get("ResultTransfer") if management else None


def _missing(error: str) -> Mapping[str, Any]:
    found: Mapping[str, Any] = msgspec.to_builtins(FileReference(error=error))
    return found
