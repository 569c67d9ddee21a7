"""The OPC UA servers of the gateways on this store, so that each can name the others to its clients."""

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
    """Return the servers by gateway; those of gateways without a lease are left out. Raises Unavailable."""
    found: dict[str, str] = await store.execute("HGETALL", store.keys.opcua_servers())
    names = sorted(found)
    held = await store.read([("EXISTS", store.keys.lease_instance(name)) for name in names])
    return {name: found[name] for name, is_held in zip(names, held, strict=True) if is_held}
