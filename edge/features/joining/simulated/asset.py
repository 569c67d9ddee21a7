"""The assets of a simulated joining system (OPC 40450-1, 7.4): a controller, and a tool that shows its state."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from asyncua import Node, ua
from msgspec import Struct

from edge import __version__
from edge.links.simulated_device import OpcuaDevice

TOOL_URI = "urn:microdcs-edge:sim:spindle"
"""The ProductInstanceUri of the tool."""

_FOLDERS = ("Controllers", "Tools")
"""The folders with assets; each other one is optional, and would have to hold an asset of its type."""
_CONTROLLER, _TOOL, _ADDITIONAL_INFORMATION = 1003, 1004, 1017
"""The interfaces of the assets and of their identification, by their numbers in the namespace of IJT."""
_TOOL_PARAMETERS = 1003
"""The interface of the parameters of a tool, in the namespace of Tightening."""
_COMPONENT_IDENTIFICATION, _MONITORING = 1005, 1014
_TYPES_OF_CONTROLLER, _TYPES_OF_TOOL = ("Undefined", "Joining Controller"), ("Undefined", "Nutrunner")
_MAKER = "microdcs-edge"


class AssetNamespaces(Struct, frozen=True):
    """The indexes of the namespaces of the nodes of assets."""

    ijt: int
    tightening: int
    di: int
    machinery: int


class ToolAsset:
    """Assets/Tools/Spindle/Parameters/Enabled below AssetManagement follows `enabled`."""

    def __init__(self) -> None:
        self._enabled = False
        self._parameters: Node | None = None
        self._node: Node | None = None
        self._changed = asyncio.Event()

    @property
    def enabled(self) -> bool:
        """Whether the tool is enabled."""
        return self._enabled

    @enabled.setter
    def enabled(self, enabled: bool) -> None:
        self._enabled = enabled
        self._changed.set()

    async def add(self, device: OpcuaDevice, management: Node, namespaces: AssetNamespaces) -> None:
        """Add the assets below AssetManagement."""
        index = device.index
        assets = await _object(management, index, "Asset/Assets", ua.QualifiedName("Assets", namespaces.ijt))
        folders = {
            name: await _object(assets, index, f"Asset/{name}", ua.QualifiedName(name, namespaces.ijt))
            for name in _FOLDERS
        }
        controller = _Asset("Controller", _CONTROLLER, "urn:microdcs-edge:sim:controller", _TYPES_OF_CONTROLLER)
        tool = _Asset("Spindle", _TOOL, TOOL_URI, _TYPES_OF_TOOL)
        await _add_asset(device, folders["Controllers"], controller, namespaces)
        self._parameters = await _add_asset(device, folders["Tools"], tool, namespaces)
        await _implement(device, self._parameters, ua.NodeId(_TOOL_PARAMETERS, namespaces.tightening))
        label = ua.QualifiedName("Enabled", namespaces.ijt)
        self._node = await self._parameters.add_variable(ua.NodeId("Asset/Enabled", index), label, self._enabled)

    async def write(self) -> None:
        """Write the variable, so that a client that reads it next finds the current value."""
        if self._node is not None:
            await self._node.write_value(self._enabled)

    @asynccontextmanager
    async def hidden(self) -> AsyncIterator[None]:
        """Remove the variable for the length of the block, to act as a controller without it."""
        if self._node is None or self._parameters is None:
            raise RuntimeError("the asset is not added yet")
        await self._parameters.delete_reference(self._node, ua.ObjectIds.HasComponent)
        try:
            yield
        finally:
            await self._parameters.add_reference(self._node, ua.ObjectIds.HasComponent)

    async def run(self) -> None:
        """Write the variable after each change until cancelled."""
        while True:
            await self._changed.wait()
            self._changed.clear()
            await self.write()


class _Asset(Struct, frozen=True):
    """An asset: its name, the interface that it implements, its ProductInstanceUri, the names of its types."""

    name: str
    interface: int
    uri: str
    types: tuple[str, ...]


async def _add_asset(device: OpcuaDevice, folder: Node, asset: _Asset, namespaces: AssetNamespaces) -> Node:
    """Add an asset with identification, monitoring and parameters; return the object of the parameters."""
    index, path = device.index, f"Asset/{asset.name}"
    node = await _object(folder, index, path, ua.QualifiedName(asset.name, index))
    await _implement(device, node, ua.NodeId(asset.interface, namespaces.ijt))
    name = ua.QualifiedName("Identification", namespaces.di)
    identification = await node.add_object(
        ua.NodeId(f"{path}/Identification", index),
        name,
        objecttype=ua.NodeId(_COMPONENT_IDENTIFICATION, namespaces.machinery),
        instantiate_optional=False,
    )
    await _implement(device, identification, ua.NodeId(_ADDITIONAL_INFORMATION, namespaces.ijt))
    maker = ua.Variant(ua.LocalizedText(_MAKER), ua.VariantType.LocalizedText)
    for member, value in (("Manufacturer", maker), ("SerialNumber", ua.Variant(asset.name))):
        await (await identification.get_child(f"{namespaces.di}:{member}")).write_value(value)
    model = ua.Variant(ua.LocalizedText("Simulated"), ua.VariantType.LocalizedText)
    for member, value in (("ProductInstanceUri", asset.uri), ("Model", model), ("SoftwareRevision", __version__)):
        label = ua.QualifiedName(member, namespaces.di)
        await identification.add_property(ua.NodeId(f"{path}/{member}", index), label, value)
    blocks = ua.QualifiedName("MachineryBuildingBlocks", namespaces.machinery)
    blocks_node = await _object(node, index, f"{path}/MachineryBuildingBlocks", blocks)
    await blocks_node.add_reference(identification, ua.ObjectIds.HasAddIn)
    monitoring = await blocks_node.add_object(
        ua.NodeId(f"{path}/Monitoring", index),
        ua.QualifiedName("Monitoring", namespaces.machinery),
        objecttype=ua.NodeId(_MONITORING, namespaces.machinery),
        instantiate_optional=False,
    )
    await _object(monitoring, index, f"{path}/Health", ua.QualifiedName("Health", namespaces.machinery))
    parameters = await _object(node, index, f"{path}/Parameters", ua.QualifiedName("Parameters", namespaces.ijt))
    kind = await parameters.add_variable(
        ua.NodeId(f"{path}/Type", index), ua.QualifiedName("Type", namespaces.ijt), ua.Variant(1, ua.VariantType.Byte)
    )
    names = [ua.LocalizedText(type_, "en") for type_ in asset.types]
    await kind.add_property(ua.NodeId(f"{path}/EnumStrings", index), ua.QualifiedName("EnumStrings"), names)
    return parameters


async def _object(parent: Node, index: int, path: str, name: ua.QualifiedName) -> Node:
    return await parent.add_object(ua.NodeId(path, index), name, objecttype=ua.NodeId(ua.ObjectIds.FolderType))


async def _implement(device: OpcuaDevice, node: Node, interface: ua.NodeId) -> None:
    await node.add_reference(device.server.get_node(interface), ua.ObjectIds.HasInterface)
