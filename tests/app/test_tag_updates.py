"""Definitions of tags of the store apply over those of the settings, also when another process changed them."""

from edge.app.tag_updates import TagUpdates
from edge.links.background_task import background_task
from edge.model.tag import TagDefinition
from edge.rules.tag_definitions import TagDefinitions
from edge.store import tag_definitions
from edge.store.client import Store
from tests.conftest import WaitUntil


async def test_definitions_of_the_store_are_loaded_when_they_change(store: Store, wait_until: WaitUntil) -> None:
    found = TagDefinitions([TagDefinition("t", unit="CEL"), TagDefinition("u", unit="BAR")])
    async with background_task(TagUpdates(store, found).run(0.01), "updates"):
        await store.commit(tag_definitions.save(store.keys, "t", '{"tag":"t","unit":"KEL"}'))
        await store.commit(tag_definitions.save(store.keys, "rev", '{"tag":"rev","unit":"C62"}'))
        await wait_until(lambda: found.find("rev"))
        assert [each.unit for tag in ("t", "u", "rev") if (each := found.find(tag))] == ["KEL", "BAR", "C62"]
        await store.commit(tag_definitions.remove(store.keys, "t"))
        await wait_until(lambda: found.find("t") == TagDefinition("t", unit="CEL"))


async def test_definition_that_cannot_be_read_is_left_out(store: Store) -> None:
    found = TagDefinitions()
    await store.commit(tag_definitions.save(store.keys, "a", '{"tag":"a","future":1}'))
    await store.commit(tag_definitions.save(store.keys, "b", '{"tag":"b"}'))
    await TagUpdates(store, found).refresh()
    assert (found.find("a"), found.find("b")) == (None, TagDefinition("b"))
