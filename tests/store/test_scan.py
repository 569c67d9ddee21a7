"""Keys are found by their pattern, in more than one batch."""

from edge.store.client import Store
from edge.store.commit import join, operation
from edge.store.scan import scan_keys


async def test_all_keys_of_a_pattern_are_found_and_no_others(store: Store) -> None:
    ours = {store.keys.cededupe(str(number)) for number in range(3000)}
    await store.commit(join(operation("SET", key, "") for key in ours))
    await store.execute("SET", store.keys.counter("other"), "1")
    found = [batch async for batch in scan_keys(store, store.keys.cededupe("*"))]
    assert {key for batch in found for key in batch} == ours
    assert len(found) > 1
    assert [batch async for batch in scan_keys(store, store.keys.transdedupe("*"))] == []
