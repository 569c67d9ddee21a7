"""Shares the script of commits with programs in other languages that use the same store."""

from edge.store.client import Store
from edge.store.commit_script import COMMIT_LUA, COMMIT_SHA

NAME = "guarded_commit"


async def share_script(store: Store) -> None:
    """Write the script with its SHA-1, by which `EVALSHA` calls it, unless it is there."""
    if await store.execute("HGET", store.keys.scripts(), f"{NAME}:sha1") != COMMIT_SHA:
        text = COMMIT_LUA.decode()
        await store.execute("HSET", store.keys.scripts(), NAME, text, f"{NAME}:sha1", COMMIT_SHA)
