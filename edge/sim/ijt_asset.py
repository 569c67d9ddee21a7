"""The tool of a simulated joining controller as an asset: clients read whether it is enabled."""

from collections.abc import Callable

from asyncua import Node, ua

from edge.sim.opcua_device import OpcuaDevice


async def add_tool_asset(device: OpcuaDevice, assets: Node, namespace: int, is_enabled: Callable[[], bool]) -> None:
    """Add Assets/Tools/Spindle/Parameters/Enabled below AssetManagement; `is_enabled` returns its value."""
    node = assets
    for name, index in (
        ("Assets", namespace),
        ("Tools", namespace),
        ("Spindle", device.index),
        ("Parameters", namespace),
    ):
        node = await node.add_object(ua.NodeId(f"Asset/{name}", device.index), ua.QualifiedName(name, index))
    label = ua.QualifiedName("Enabled", namespace)
    enabled = await node.add_variable(ua.NodeId("Asset/Enabled", device.index), label, False)  # noqa: FBT003 - the value

    def read(_node: ua.NodeId, _attribute: ua.AttributeIds) -> ua.DataValue:
        return ua.DataValue(ua.Variant(is_enabled(), ua.VariantType.Boolean))

    device.server.set_attribute_value_callback(enabled.nodeid, read)
