"""Mirrored sets are replaced whole."""

from edge.store import set_mirrors as mirrors
from edge.store.client import Store


async def test_mirror_is_replaced_and_deleted(store: Store) -> None:
    for members in ({"a", "b"}, {"b", "c"}, set(), {"d"}):
        await store.commit(mirrors.save(store.keys, "m", members, 1))
        assert await mirrors.load(store, "m") == members
        assert await store.execute("EXISTS", store.keys.mirror_staging("m")) == 0
