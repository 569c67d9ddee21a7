"""Jobs whose result was not delivered are listed by their end."""

from edge.store import undelivered
from edge.store.client import Store


async def test_undelivered_jobs_are_ordered_by_end_time(store: Store) -> None:
    for name, ended_at in (("late", 30), ("early", 10), ("middle", 20)):
        await store.commit(undelivered.add(store.keys, "s", name, ended_at))
    assert await undelivered.count(store, "s") == 3
    assert await undelivered.oldest(store, "s", 2) == ["early", "middle"]
    assert await undelivered.oldest(store, "s", 0) == []
    await store.commit(undelivered.discard(store.keys, "s", "early"))
    assert await undelivered.oldest(store, "s", 9) == ["middle", "late"]
