"""The clock of the store is in milliseconds."""

from edge.instant import now_ms
from edge.store.client import Store
from edge.store.server_time import server_time


async def test_store_on_this_host_has_the_host_time(store: Store) -> None:
    before = now_ms()
    assert before - 1 <= await server_time(store) <= now_ms() + 1
