"""Tests of what a piece of equipment needs beyond its connection."""

from edge.store import equipment_memory
from edge.store.client import Store


async def test_texts_of_equipment_are_kept_by_its_name(store: Store) -> None:
    assert await equipment_memory.load(store, "wrench") == {}
    await equipment_memory.save(store, "wrench", {"revisions": "1:3", "last": "7"})
    await equipment_memory.save(store, "wrench", {"last": "8"})
    await equipment_memory.save(store, "press", {})
    assert await equipment_memory.load(store, "wrench") == {"revisions": "1:3", "last": "8"}
    assert await equipment_memory.load(store, "press") == {}
