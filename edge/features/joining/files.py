"""Files that a tightening controller offers with its results, also with the single joinings that a result holds."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from edge.equipment.result_file import ResultFileReader
from edge.features.joining.conversion import joinings_in
from edge.features.joining.schema import Result
from edge.links.opcua import ClientSession, TypeName
from edge.ports.result_trace import FILE_MEMBER
from edge.station.equipment import Command

_TRANSFER_OPTIONS = TypeName("http://opcfoundation.org/UA/Machinery/Result/", 3004)


class JoiningFiles:
    """Adds references to the files of results to their data; without a `reader` the settings want none."""

    def __init__(self, session: ClientSession, reader: ResultFileReader | None) -> None:
        self._session = session
        self._reader = reader

    async def add(self, command: Command, result: Result, parts: Sequence[Result], data: dict[str, Any]) -> None:
        """Fetch the files of a result and of its joinings, which are `parts` where it does not hold them.

        Raises Unavailable when the connection is lost, as `ResultFileReader.read`.
        """
        if self._reader is not None:
            for result_id, found in _offering(result, parts, data):
                options = await self._options(result_id)
                found[FILE_MEMBER] = await self._reader.read(command.command_id, result_id, options)

    async def add_late(self, command_id: str, result: Result, data: dict[str, Any]) -> None:
        """Fetch the files of a late result of a command."""
        if self._reader is not None:
            for result_id, found in _offering(result, (), data):
                found[FILE_MEMBER] = await self._reader.read_late(command_id, await self._options(result_id))

    async def _options(self, result_id: str) -> Any:
        return await self._session.structure(_TRANSFER_OPTIONS, {"ResultId": result_id})


def _offering(result: Result, parts: Sequence[Result], data: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the id of each result with a file, from the outermost one inwards, and the data that describe it."""
    meta: Mapping[str, Any] = result["ResultMetaData"]
    if meta.get("HasTransferableDataOnFile"):
        yield meta["ResultId"], data
    for entry, described in zip(joinings_in(result) or parts, data.get("results", {}).values(), strict=False):
        yield from _offering(entry, (), described)
