"""The stored state of the Sparkplug edge node."""

from edge.features.sparkplug import store as sparkplug
from edge.features.sparkplug.store import NodeRecord
from edge.store.client import Store
from edge.store.commit import Committed, Stale


async def test_number_and_cursors_are_read_back(store: Store) -> None:
    assert await sparkplug.load(store) == NodeRecord(None, {})
    assert await store.commit(sparkplug.save_bd_seq(store.keys, 0, None)) == Committed()
    assert await store.commit(sparkplug.save_bd_seq(store.keys, 1, 0)) == Committed()
    await store.commit(sparkplug.save_cursor(store.keys, "samples", "5-0"))
    assert await sparkplug.load(store) == NodeRecord(1, {"samples": "5-0"})


async def test_sequence_number_is_taken_by_one_gateway_only(store: Store) -> None:
    await store.commit(sparkplug.save_bd_seq(store.keys, 0, None))
    assert isinstance(await store.commit(sparkplug.save_bd_seq(store.keys, 0, None)), Stale)
