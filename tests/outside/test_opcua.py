"""OPC UA clients of another vendor see every job."""

from tests.outside.conftest import Plant
from tests.outside.opcua_client import opcua_client, read_line
from tests.outside.plant import order


def test_a_stored_job_is_in_the_list_of_an_opc_ua_client(plant: Plant) -> None:
    assert plant.mes.call("Store", order("J1")).status == 1
    with opcua_client(plant.opcua_port, "list") as reader:
        assert read_line(reader) == {"jobs": ["J1"]}
