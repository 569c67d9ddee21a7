"""Opens the OPC UA variables of the equipment for flows; asyncua is imported only where there is such equipment."""

import contextlib

from edge.config import OpcuaEquipmentSettings, Settings
from edge.features.flows.nodes.act import WriteVariable
from edge.features.flows.nodes.read import VariableValue
from edge.features.flows.ports.table import Handler


async def opcua_handlers(stack: contextlib.AsyncExitStack, settings: Settings) -> dict[type, Handler]:
    """Return the handlers of OPC UA variables; none without OPC UA equipment."""
    sections = {
        name: equipment_settings
        for name, equipment_settings in settings.southbound.items()
        if isinstance(equipment_settings, OpcuaEquipmentSettings)
    }
    if not sections:
        return {}
    from edge.features.flows.ports.variables import VariableClient  # noqa: PLC0415

    client = VariableClient(sections)
    stack.push_async_callback(client.close)
    return {VariableValue: client.read, WriteVariable: client.write}
