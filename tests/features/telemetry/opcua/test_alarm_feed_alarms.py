"""Conditions exist with telemetry only."""

from asyncua import ua

from edge.store.client import Store
from edge.uaserver.namespaces import Namespace
from tests.features.telemetry.opcua.alarm_plant import alarm_server
from tests.opcua_client import patient_client
from tests.uaserver.running import MACHINES, served


async def test_namespace_of_alarms_has_the_identity_of_the_store(store: Store) -> None:
    uris = []
    for _ in range(2):
        async with alarm_server(store) as server, patient_client(server.endpoint) as client:
            uris.append((await client.get_namespace_array())[Namespace.ALARMS])
    assert uris[0] == uris[1]
    assert uris[0].startswith("urn:microdcs-edge:store:")


async def test_server_without_telemetry_has_no_conditions() -> None:
    async with served(machines=MACHINES[:1]) as server, patient_client(server.endpoint) as client:
        assert len(await client.get_namespace_array()) == Namespace.ALARMS
        machine = client.get_node(ua.NodeId("station-1", Namespace.MACHINES))
        assert "Alarms" not in [(await child.read_browse_name()).Name for child in await machine.get_children()]
