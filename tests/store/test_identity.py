"""The identity of a store is made once."""

import asyncio

from edge.store.client import Store
from edge.store.identity import load_identity


async def test_all_gateways_of_a_store_read_one_identity(store: Store) -> None:
    found = await asyncio.gather(*(load_identity(store) for _ in range(8)))
    assert len(set(found)) == 1
    assert len(found[0]) == 36
