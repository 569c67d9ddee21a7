"""The stored results of a simulated controller."""

from typing import Any, cast

from edge.features.simulator.ijt_store import StoredResults


async def test_cleared_store_continues_its_sequence_numbers() -> None:
    store = StoredResults(cast("Any", None), cast("Any", None))
    store.add(store.next_number(), "T1", {})
    assert store.last == 1
    store.clear()
    assert store.next_number() == 2
    assert len(store.methods()) == 6
