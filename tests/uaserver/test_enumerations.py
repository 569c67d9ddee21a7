"""Enumerations of our own are shown by name, as another stack (node-opcua) and plain asyncua read them."""

import pytest
from asyncua import ua

from edge.uaserver.chart_types import ACTION_STATE, CHART_STATE
from edge.uaserver.namespaces import Namespace
from edge.uaserver.server import UaServer
from tests.opcua_client import patient_client
from tests.uaserver.other_stack import OtherStack, node
from tests.uaserver.running import KINDS

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.slow]

DEFINITION, DATA_TYPE = 23, 14


async def test_kind_of_maintenance_is_an_enumeration_with_names(other: OtherStack) -> None:
    """It was a text that no client could choose from."""
    (kind,) = await other.read({"nodeId": node("ns=1;s=Gateway/Maintenance/Kind"), "attributeId": DATA_TYPE})
    assert kind["value"]["value"] == "ns=7;s=MaintenanceKind"
    (definition,) = await other.read({"nodeId": node("ns=7;s=MaintenanceKind"), "attributeId": DEFINITION})
    fields = definition["value"]["value"]["fields"]
    assert [(field["name"], field["value"][1]) for field in fields] == [("off", 0), ("drain", 1), ("now", 2)]
    (strings, value) = await other.values("ns=7;s=MaintenanceKind/EnumStrings", "ns=1;s=Gateway/Maintenance/Kind")
    assert [text["text"] for text in strings] == ["off", "drain", "now"]
    assert value == 0


async def test_kind_of_equipment_is_an_enumeration_with_fixed_numbers(other: OtherStack) -> None:
    """It was a text. A feature that is absent leaves a gap, so the values have numbers of their own."""
    (values,) = await other.values("ns=7;s=EquipmentKind/EnumValues")
    assert {shown["displayName"]["text"]: shown["value"][1] for shown in values} == KINDS


async def test_plain_asyncua_decodes_states_and_kinds_by_name(observed: UaServer) -> None:
    async with patient_client(observed.endpoint) as client:
        types = await client.load_data_type_definitions()
        for enumeration in (CHART_STATE, ACTION_STATE):
            assert [member.name for member in types[enumeration.name]] == list(enumeration.values)
            loaded = client.get_node(ua.NodeId(enumeration.name, Namespace.TYPES))
            assert (await loaded.read_browse_name()).Name == enumeration.name
        assert {member.name: member.value for member in types["EquipmentKind"]} == KINDS
