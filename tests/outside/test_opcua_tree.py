"""A client of another vendor walks the whole address space: each variable has a value, each method its arguments."""

from types import MappingProxyType
from typing import Any

import pytest

from tests.free_ports import free_port
from tests.outside.flow_plant import chain, node, open_flow_plant
from tests.outside.opcua_client import opcua_client, read_line
from tests.outside.servers import wait_for

pytestmark = pytest.mark.slow

NO_STATE = "OPC 10031-4, 6.2.1.2: the receiver describes the states of a job and has none itself"
REASONS = MappingProxyType(
    {
        "/JobOrderControl/CurrentState": NO_STATE,
        "/JobOrderControl/CurrentState/Id": NO_STATE,
        "Substates/CurrentState": NO_STATE,
        "Substates/CurrentState/Id": NO_STATE,
        "/Maintenance/Since": "it is off",
        "/Maintenance/Until": "it is off",
        "/Server/EstimatedReturnTime": "the maintenance mode is off",
        "/Equipment/wrench/ConnectionSince": "equipment over MQTT has not shown whether it is there",
        "/Equipment/wrench/LastSeen": "equipment over MQTT has not shown whether it is there",
        "/Equipment/wrench/Connected": "equipment over MQTT has not shown whether it is there",
        "/AliasUpdateDataType/DataSetClassId": "the node set of the standard has none; this server has no aliases",
        "/AliasUpdateDataType/DataSetMetaData": "the node set of the standard has none; this server has no aliases",
    }
)
"""Why a variable has no value, by the end of its path."""


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a client of another vendor finds at a gateway with a flow, equipment and a machine."""
    port, directory = free_port(), tmp_path_factory.mktemp("plant")
    with open_flow_plant(directory) as plant:
        plant.opcua = (
            f'endpoint = "opc.tcp://127.0.0.1:{port}"\nsecurity = "none"\nanonymous = "engineer"\n'
            f'pki = "{directory}/pki"\n'
        )
        plant.start("edge")
        plant.put(chain("tick/1", node("v", "constant", value=1), interval_seconds=1))
        wait_for(lambda: "running" in plant.edge("list"), "the flow runs")
        with opcua_client(port, "tree") as client:
            return read_line(client)


def test_no_variable_is_without_a_value_but_for_a_stated_reason(tree: Any) -> None:
    """ReleaseStops had no arguments: a client showed an empty dialog. Namespaces had nulls."""
    without = [path for path, _status in tree["empty"]]
    assert [value for value in without if not value.endswith(tuple(REASONS))] == []
    assert tree["variables"] > 3000
    # Receiver, provider, interventions, equipment, flow, maintenance, and those of the standard.
    assert tree["methods"] >= 25
    assert tree["wrong"] == [], "the wrong number of arguments has its own status code (OPC 10000-4, 5.12.2)"


def test_every_node_below_objects_has_a_description(tree: Any) -> None:
    """The official nodes had none: those of the Server object, of namespaces, of the methods of conditions."""
    assert tree["undescribed"] == []


def test_no_instant_is_shown_as_the_year_1601(tree: Any) -> None:
    assert tree["dates"] == []


def test_folders_that_are_always_empty_are_absent(tree: Any) -> None:
    """DeviceSet, NetworkSet and DeviceTopology of DI held nothing."""
    assert sorted(tree["objects"]) == ["Gateway", "Machines", "Server"]


def test_methods_of_jobs_are_in_the_order_of_their_use(tree: Any) -> None:
    """They were in that of the alphabet, Abort first."""
    assert tree["order"][:11] == [
        *("Store", "StoreAndStart", "Start", "RevokeStart", "Update"),
        *("Pause", "Resume", "Stop", "Abort", "Cancel", "Clear"),
    ]
