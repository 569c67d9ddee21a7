"""The OPC UA servers of the gateways on this store, and the identity of the store, which is the same for all of them.

The identity is made once, and kept by a backup.
"""

import uuid

from edge.store import instance_leases
from edge.store.client import Store
from edge.store.commit import Commit, operation
from edge.store.keys import Keys


def put(keys: Keys, gateway: str, text: str) -> Commit:
    """Write the server of a gateway."""
    return operation("HSET", keys.opcua_servers(), gateway, text)


def remove(keys: Keys, gateway: str) -> Commit:
    """Remove the server of a gateway."""
    return operation("HDEL", keys.opcua_servers(), gateway)


async def load(store: Store) -> dict[str, str]:
    """Return the servers by gateway; those of gateways whose lease has ended are left out. Raises Unavailable."""
    found: dict[str, str] = await store.execute("HGETALL", store.keys.opcua_servers())
    ended = await instance_leases.read_ended(store, found)
    return {name: found[name] for name in sorted(found) if name not in ended}


async def load_identity(store: Store) -> str:
    """Return the identity of the store; make it when there is none. Raises Unavailable."""
    key = store.keys.identity()
    found: str | None = await store.execute("GET", key)
    if found is None:
        await store.commit(operation("SET", key, str(uuid.uuid4()), "NX"))
        found = await store.execute("GET", key)
    return found or ""
