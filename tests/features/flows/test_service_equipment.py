"""Flows reach the variables of OPC UA equipment; without it asyncua is not imported."""

import contextlib
import subprocess
import sys

from edge.config import MqttEquipmentSettings, OpcuaEquipmentSettings, Settings
from edge.features.flows.nodes.outside import VariableValue, WriteVariable
from edge.features.flows.service import opcua_handlers


async def test_only_opcua_equipment_has_variables() -> None:
    wrench = MqttEquipmentSettings(type_ids=("a",))
    camera = OpcuaEquipmentSettings(kind="vision", type_ids=("b",), url="opc.tcp://127.0.0.1:1", security="none")
    async with contextlib.AsyncExitStack() as stack:
        assert await opcua_handlers(stack, Settings(southbound={"wrench": wrench})) == {}
        found = await opcua_handlers(stack, Settings(southbound={"wrench": wrench, "camera": camera}))
    assert found.keys() == {VariableValue, WriteVariable}


def test_flows_import_no_opcua() -> None:
    code = "import sys, edge.features.flows.service"
    code += "; print('asyncua' in sys.modules, 'edge.features.telemetry.processor' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert found.stdout == "False False\n"
