"""Consumer groups are created once, also by several gateways that start together."""

import asyncio

from edge.store.client import Store
from edge.store.consumer_group import create_group


async def test_concurrent_creation_of_a_group_succeeds(store: Store) -> None:
    """The slower one took the answer for an outage: a warning, and a second of waiting."""
    await asyncio.gather(*(create_group(store, f"stream-{number % 5}", "g") for number in range(20)))
    for number in range(5):
        assert [each["name"] for each in await store.execute("XINFO GROUPS", f"stream-{number}")] == ["g"]
