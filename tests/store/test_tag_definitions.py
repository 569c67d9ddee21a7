"""Definitions of tags are kept by tag, whatever its name is; each change is counted."""

from edge.store import tag_definitions
from edge.store.client import Store
from edge.store.tag_definitions import StoredDefinitions


async def test_definitions_are_saved_counted_and_removed(store: Store) -> None:
    assert await tag_definitions.load(store) == StoredDefinitions()
    for tag in ("b", "rev"):
        await store.commit(tag_definitions.save(store.keys, tag, "{}"))
    assert await tag_definitions.load(store) == StoredDefinitions(2, {"b": "{}", "rev": "{}"})
    await store.commit(tag_definitions.remove(store.keys, "b"))
    assert (await tag_definitions.revision(store), (await tag_definitions.load(store)).texts) == (3, {"rev": "{}"})
