"""Keep the payload of published status events, so that a repetition carries the identical payload."""

from edge.store.client import Store


async def keep(store: Store, scope: str, position: str, text: str, lifetime_s: int) -> str:
    """Keep an event for a time; return the form that was kept first, which may be this one."""
    key = store.keys.publisher_event(scope, position)
    _, kept = await store.read([("SET", key, text, "NX", "EX", lifetime_s), ("GET", key)])
    return text if kept is None else str(kept)
