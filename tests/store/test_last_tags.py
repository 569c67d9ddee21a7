"""The last samples of tags."""

from edge.store import last_tags as tags
from edge.store.client import Store


async def test_tags_are_read_in_the_order_of_their_names(store: Store) -> None:
    assert await tags.load(store) == {}
    await store.commit(tags.save(store.keys, {"b": "2", "a": "1"}))
    await store.commit(tags.save(store.keys, {"b": "3"}))
    assert list((await tags.load(store)).items()) == [("a", "1"), ("b", "3")]


async def test_tags_of_gateways_are_kept_apart(store: Store) -> None:
    written = {"gateway.t[edge]": "own", "gateway.t[other]": "theirs", "equipment.w.c[other]": "one", "a[b]": "tag"}
    await store.commit(tags.save(store.keys, {"gateway.t": "former"}))
    await store.commit(tags.save(store.keys, written, {"gateway.t"}))
    assert await tags.load(store) == {
        "a[b]": "tag",
        "equipment.w.c": "one",
        "gateway.t": "own",
        "gateway.t[other]": "theirs",
    }
    names = ("gateway.t", "gateway.t[other]", "equipment.w.c", "unknown")
    assert [await tags.load_one(store, name) for name in names] == ["own", "theirs", "one", None]
