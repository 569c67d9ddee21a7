"""The last samples of tags."""

from edge.store import tags
from edge.store.client import Store


async def test_tags_are_read_in_the_order_of_their_names(store: Store) -> None:
    assert await tags.load(store) == {}
    await store.commit(tags.save(store.keys, {"b": "2", "a": "1"}))
    await store.commit(tags.save(store.keys, {"b": "3"}))
    assert list((await tags.load(store)).items()) == [("a", "1"), ("b", "3")]
