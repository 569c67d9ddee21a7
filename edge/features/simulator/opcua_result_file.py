"""Offers a file with the results of a simulated OPC UA device: ResultTransfer (OPC 10000-20, 4.4)."""

from asyncua import Node, ua

from edge.features.simulator.opcua_device import OpcuaDevice

_FILE_TYPE = ua.NodeId(ua.ObjectIds.FileType)


class ResultTransfer:
    """Serves `content` as a new temporary file for each GenerateFileForRead; None offers no file.

    `generated` lists the options of the requests, `open_files` the handles that are not closed.
    """

    def __init__(self, device: OpcuaDevice, transfer: Node, content: bytes | None) -> None:
        self.content = content
        self.generated: list[object] = []
        self.open_files: dict[int, int] = {}
        self._device = device
        self._transfer = transfer

    async def begin(self) -> None:
        """Link the method that generates a file."""
        await self._device.link(self._transfer, {"GenerateFileForRead": self._generate})

    async def _generate(self, _: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant]:
        self.generated += await self._device.plain(arguments)
        content, handle = self.content or b"", len(self.generated)
        file = await self._transfer.add_object(self._device.index, f"file {handle}", objecttype=_FILE_TYPE)
        await (await file.get_child("0:Size")).write_value(len(content), ua.VariantType.UInt64)
        self.open_files[handle] = 0

        async def read(_: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant] | ua.StatusCode:
            given, length = await self._device.plain(arguments)
            if given not in self.open_files or length < 0:
                return ua.StatusCode(ua.StatusCodes.BadInvalidArgument)
            start = self.open_files[given]
            self.open_files[given] = start + length
            return [ua.Variant(content[start : start + length], ua.VariantType.ByteString)]

        async def close(_: ua.NodeId, *arguments: ua.Variant) -> list[ua.Variant] | ua.StatusCode:
            (given,) = await self._device.plain(arguments)
            if self.open_files.pop(given, None) is None:
                return ua.StatusCode(ua.StatusCodes.BadInvalidArgument)
            await self._device.server.delete_nodes([file], recursive=True)
            return []

        await self._device.link(file, {"Read": read, "Close": close})
        return [
            ua.Variant(file.nodeid, ua.VariantType.NodeId),
            ua.Variant(handle, ua.VariantType.UInt32),
            ua.Variant(ua.NodeId(), ua.VariantType.NodeId),
        ]
