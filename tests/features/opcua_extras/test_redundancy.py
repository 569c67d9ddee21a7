"""Two gateways on one store list each other in their OPC UA server redundancy."""

import asyncio
from collections.abc import Mapping

from edge.features.opcua_extras.redundancy import SharedServer, SharedServers
from edge.links.background_task import background_task
from edge.store import instance_leases
from edge.store.client import Store
from tests.conftest import WaitUntil


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
