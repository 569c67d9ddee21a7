"""Creates the consumer groups of streams."""

from edge.store.client import Store
from edge.store.errors import GroupExists


async def create_group(store: Store, key: str, group: str) -> None:
    """Create a consumer group where it is missing; it begins at the oldest entry. Another gateway may be faster."""
    groups = await store.execute("XINFO GROUPS", key) if await store.execute("EXISTS", key) else ()
    if group in {each["name"] for each in groups}:
        return
    try:
        await store.execute("XGROUP CREATE", key, group, "0", "MKSTREAM")
    except GroupExists:
        return
