"""Tools that another system has disabled, by their place; they stay disabled, whichever gateway uses them next."""

from edge.store.client import Store
from edge.store.commit import operation


async def keep(store: Store, place: str, since: int | None) -> None:
    """Keep that a tool is disabled since an instant, in milliseconds since the epoch; None: it is not disabled."""
    key = store.keys.disabled_tools()
    change = operation("HDEL", key, place) if since is None else operation("HSET", key, place, str(since))
    await store.commit(change)


async def is_disabled(store: Store, place: str) -> bool:
    """Return whether another system has disabled the tool at a place."""
    return bool(await store.execute("HEXISTS", store.keys.disabled_tools(), place))
