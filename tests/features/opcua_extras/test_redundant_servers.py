"""A single server reports no redundancy; several servers of a store form a hot set, found by FindServers."""

import asyncio
from collections.abc import Mapping

from asyncua import Client, ua

from edge.features.opcua_extras.redundant_servers import RedundantServers, SharedServer, SharedServers
from edge.foundation.task_group import background_task
from edge.store import instance_leases
from edge.store.client import Store
from edge.uaserver.namespaces import application_uri
from edge.uaserver.parts import NewServer
from tests.conftest import WaitUntil
from tests.opcua_client import patient_client
from tests.uaserver.running import MACHINES, served

_I = ua.ObjectIds
PEERS = {"urn:b": "opc.tcp://b:4840", "urn:a": "opc.tcp://a:4840"}


async def set_of(client: Client) -> tuple[int, int, list[str]]:
    """Return the type of ServerRedundancy, the support and the servers."""
    node = client.get_node(_I.Server_ServerRedundancy)
    members = {(await value.read_browse_name()).Name: await value.read_value() for value in await node.get_properties()}
    type_id = (await node.read_type_definition()).Identifier
    return type_id, members["RedundancySupport"], members.get("ServerUriArray", [])


async def test_servers_of_a_store_form_a_hot_redundant_set() -> None:
    own, added = application_uri("edge"), []

    async def add(new: NewServer) -> None:
        added.append(RedundantServers(new.core, new.uri))

    async with served(machines=MACHINES[:1], parts=[add]) as server, patient_client(server.endpoint) as client:
        (redundancy,) = added
        assert await set_of(client) == (_I.ServerRedundancyType, 0, [])
        await redundancy.show(PEERS)
        assert await set_of(client) == (_I.NonTransparentRedundancyType, 3, sorted((own, *PEERS)))
        found = {value.ApplicationUri: value.DiscoveryUrls for value in await client.find_servers()}
        assert found.keys() == {own, *PEERS}
        assert found["urn:b"] == ["opc.tcp://b:4840"]
        await redundancy.show({"urn:b": "opc.tcp://b:4841"})
        found = {value.ApplicationUri: value.DiscoveryUrls for value in await client.find_servers()}
        assert found.keys() == {own, "urn:b"}
        assert found["urn:b"] == ["opc.tcp://b:4841"]
        await redundancy.show({})
        assert await set_of(client) == (_I.ServerRedundancyType, 0, [])
        assert {value.ApplicationUri for value in await client.find_servers()} == {own}


async def test_start_and_stop_of_a_gateway_is_shown_by_the_other_gateway(store: Store, wait_until: WaitUntil) -> None:
    seen: dict[str, list[Mapping[str, str]]] = {"a": [], "b": []}

    def sharing(name: str) -> SharedServers:
        async def show(peers: Mapping[str, str]) -> None:
            seen[name].append(peers)

        return SharedServers(store, name, SharedServer(f"urn:{name}", f"opc.tcp://{name}:4840"), show)

    for name in seen:
        await instance_leases.acquire(store, name, name)
    await store.commit(instance_leases.put_opcua_server(store.keys, "a", "garbage"))
    async with background_task(sharing("a").run(0.01), "a"), asyncio.timeout(60):
        async with background_task(sharing("b").run(0.01), "b"):
            await wait_until(lambda: seen["a"] and seen["b"])
        await wait_until(lambda: len(seen["a"]) > 1)
    assert seen == {"a": [{"urn:b": "opc.tcp://b:4840"}, {}], "b": [{"urn:a": "opc.tcp://a:4840"}]}
    assert await instance_leases.load_opcua_servers(store) == {}
