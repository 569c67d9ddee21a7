"""An event that no job took is remembered for half an hour to an hour, and without one of the long marks."""

from msgspec.structs import replace

from edge.store.client import Store
from edge.store.commit import Committed, Stale
from edge.store.discarded_events import DiscardedEvent

HALF_HOUR = 1_800_000
EVENT = DiscardedEvent("wrench", "/wrench", "1", 100 * HALF_HOUR)


async def _is_known(store: Store, event: DiscardedEvent) -> bool:
    queries = event.query_known(store.keys), event.query_known_before(store.keys)
    replies = await store.fetch_all(*queries)
    return any(replies.value(each) for each in queries)


async def test_discarded_event_is_known_in_its_half_hour_and_the_next(store: Store) -> None:
    assert not await _is_known(store, EVENT)
    assert await store.commit(EVENT.remember(store.keys)) == Committed()
    assert await _is_known(store, EVENT)
    assert await _is_known(store, replace(EVENT, at=EVENT.at + HALF_HOUR))
    assert not await _is_known(store, replace(EVENT, at=EVENT.at + 2 * HALF_HOUR))
    assert not await _is_known(store, replace(EVENT, equipment="camera"))


async def test_event_is_not_taken_after_another_instance_discarded_it(store: Store) -> None:
    await store.commit(EVENT.remember(store.keys))
    later = replace(EVENT, at=EVENT.at + HALF_HOUR)
    assert isinstance(await store.commit(later.guards(store.keys)), Stale)
    assert isinstance(await store.commit(later.remember(store.keys)), Stale)
    assert await store.commit(replace(EVENT, event_id="2").guards(store.keys)) == Committed()


async def test_memory_of_discarded_events_is_bounded_and_ends(store: Store) -> None:
    await store.commit(EVENT.remember(store.keys))
    key = store.keys.discarded("wrench", 100)
    assert 0 < await store.execute("PTTL", key) <= 2 * HALF_HOUR
    assert await store.fetch(EVENT.query_room(store.keys))
    await store.execute("HSET", key, *(str(number // 2) for number in range(20_000)))
    assert not await store.fetch(EVENT.query_room(store.keys))
