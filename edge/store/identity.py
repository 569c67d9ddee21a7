"""The identity of the store: made once, the same for every gateway on it, and kept by a backup."""

import uuid

from edge.store.client import Store
from edge.store.commit import operation


async def load_identity(store: Store) -> str:
    """Return the identity of the store; make it when there is none. Raises Unavailable."""
    key = store.keys.identity()
    found: str | None = await store.execute("GET", key)
    if found is None:
        await store.commit(operation("SET", key, str(uuid.uuid4()), "NX"))
        found = await store.execute("GET", key)
    return found or ""
