"""The tool of a simulated joining controller as an asset: clients read and observe whether it is enabled."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from asyncua import Node, ua

from edge.sim.opcua_device import OpcuaDevice


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

    async def add(self, device: OpcuaDevice, assets: Node, namespace: int) -> None:
        """Add the objects and the variable below AssetManagement."""
        node = assets
        for name, index in (
            ("Assets", namespace),
            ("Tools", namespace),
            ("Spindle", device.index),
            ("Parameters", namespace),
        ):
            node = await node.add_object(ua.NodeId(f"Asset/{name}", device.index), ua.QualifiedName(name, index))
        self._parameters = node
        label = ua.QualifiedName("Enabled", namespace)
        self._node = await node.add_variable(ua.NodeId("Asset/Enabled", device.index), label, self._enabled)

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
