"""Mirrored sets: a copy of the members that another system keeps, never half visible."""

from collections.abc import Collection

from edge.store.client import Store
from edge.store.commit import Commit, join, operation, spread
from edge.store.keys import Keys


def save(keys: Keys, name: str, members: Collection[str]) -> Commit:
    """Write the members of a mirror: staged and renamed; without members it is deleted."""
    key, staging = keys.mirror(name), keys.mirror_staging(name)
    if not members:
        return operation("DEL", key)
    staged = spread("SADD", (staging,), sorted(members))
    return join((operation("DEL", staging), staged, operation("RENAME", staging, key)))


async def load(store: Store, name: str) -> frozenset[str]:
    """Return the members of a mirror."""
    return frozenset(await store.execute("SMEMBERS", store.keys.mirror(name)))
