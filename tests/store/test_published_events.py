"""The first payload of a published event is kept for its lifetime."""

from edge.store import published_events
from edge.store.client import Store


async def test_first_payload_of_an_event_is_kept(store: Store) -> None:
    assert await published_events.keep(store, "s", "1-0", "first", 60) == "first"
    assert await published_events.keep(store, "s", "1-0", "second", 60) == "first"
    assert await published_events.keep(store, "s", "2-0", "other", 60) == "other"
    assert 0 < await store.execute("TTL", store.keys.publisher_event("s", "1-0")) <= 60
