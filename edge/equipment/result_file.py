"""Fetches the file that an OPC UA device offers with a result (ResultTransfer), such as an image."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from typing import Any

from edge.links.file_transfer import TransferTimes, read_temporary_file
from edge.links.opcua import ClientSession, Node
from edge.ports.result_trace import file_error
from edge.station.equipment import StationPort

_MOST_TRIES = 2
_TIMES = TransferTimes()
_LATE_TIMES = TransferTimes(whole=5.0)
"""A late result is fetched among the events of the device: the result of the next command may wait behind it."""


class ResultFileReader:
    """Reads the files of the results of a device on one connection; `tries`, by result, counts beyond it.

    `transfer` is the ResultTransfer of the device, None where it has none.
    """

    def __init__(
        self,
        session: ClientSession,
        transfer: Node | None,
        station: StationPort,
        tries: Counter[tuple[str, str]],
        times: TransferTimes = _TIMES,
        late_times: TransferTimes = _LATE_TIMES,
    ) -> None:
        self._session = session
        self._transfer = transfer
        self._station = station
        self._tries = tries
        self._times = times
        self._late_times = late_times
        self._slow: set[str] = set()
        """The commands, with an empty one for late results, of a transfer that took too long on this connection."""

    async def read(self, command_id: str, result_id: str, options: Any) -> Mapping[str, Any]:
        """Return the reference to the file of a result, or with the reason why it is not stored.

        Raises Unavailable when the connection is lost; a result whose transfer loses it again has no file.
        """
        key = command_id, result_id
        if self._tries[key] >= _MOST_TRIES:
            del self._tries[key]
            return file_error("the connection was lost at each transfer of the file")
        self._tries[key] += 1
        reference = await self._read(command_id, command_id, options, self._times)
        del self._tries[key]
        return reference

    async def read_late(self, command_id: str, options: Any) -> Mapping[str, Any]:
        """Return the same of a late result; raises Unavailable when the connection is lost."""
        return await self._read("", command_id, options, self._late_times)

    async def _read(self, slow: str, command_id: str, options: Any, times: TransferTimes) -> Mapping[str, Any]:
        if self._transfer is None:
            return file_error("the device announces a file, and has no ResultTransfer")
        if slow in self._slow:
            return file_error("an earlier transfer of a file took too long")
        began = asyncio.get_running_loop().time()
        parts = read_temporary_file(self._session, self._transfer, options, times)
        reference = await self._station.store_file(command_id, parts)
        if asyncio.get_running_loop().time() - began >= times.whole:
            self._slow.add(slow)
        return reference


async def find_transfer(session: ClientSession, management: Node | None) -> Node | None:
    """Return the ResultTransfer of a result management; None where there is none."""
    return (await session.children(management)).get("ResultTransfer") if management else None
