"""The OPC UA servers of the gateways on a store."""

import asyncio

from edge.store import instance_leases, opcua_servers
from edge.store.client import Store
from edge.store.opcua_servers import load_identity


async def test_server_of_a_gateway_without_lease_is_left_out(store: Store) -> None:
    for name in ("a", "b"):
        await store.commit(opcua_servers.put(store.keys, name, f"server of {name}"))
    assert await opcua_servers.load(store) == {}
    await instance_leases.acquire(store, "a", "token")
    assert await opcua_servers.load(store) == {"a": "server of a"}
    await store.commit(opcua_servers.remove(store.keys, "a"))
    assert await opcua_servers.load(store) == {}


async def test_all_gateways_of_a_store_read_one_identity(store: Store) -> None:
    found = await asyncio.gather(*(load_identity(store) for _ in range(8)))
    assert len(set(found)) == 1
    assert len(found[0]) == 36
