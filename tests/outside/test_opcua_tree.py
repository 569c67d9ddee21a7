"""A client of another vendor walks the whole address space: each variable has a value, each method its arguments."""

from pathlib import Path
from types import MappingProxyType

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
        "/Equipment/wrench/Connected": "equipment over MQTT has not shown whether it is there",
        "/AliasUpdateDataType/DataSetClassId": "the node set of the standard has none; this server has no aliases",
        "/AliasUpdateDataType/DataSetMetaData": "the node set of the standard has none; this server has no aliases",
    }
)
"""Why a variable has no value, by the end of its path."""


def test_no_variable_is_without_a_value_but_for_a_stated_reason(tmp_path: Path) -> None:
    """ReleaseStops had no arguments: a client showed an empty dialog. Namespaces and DeviceTopology had nulls."""
    port = free_port()
    with open_flow_plant(tmp_path) as plant:
        plant.opcua = (
            f'endpoint = "opc.tcp://127.0.0.1:{port}"\nsecurity = "none"\nanonymous = "engineer"\n'
            f'pki = "{tmp_path}/pki"\n'
        )
        plant.start("edge")
        plant.put(chain("tick/1", node("v", "constant", value=1), interval_seconds=1))
        wait_for(lambda: "running" in plant.edge("list"), "the flow runs")
        with opcua_client(port, "tree") as client:
            found = read_line(client)
    without = [path for path, _status in found["empty"]]
    assert [value for value in without if not value.endswith(tuple(REASONS))] == []
    assert found["variables"] > 3000
    # Receiver, provider, interventions, equipment, flow, maintenance, and those of the standard.
    assert found["methods"] >= 25
    assert found["wrong"] == [], "the wrong number of arguments has its own status code (OPC 10000-4, 5.12.2)"
