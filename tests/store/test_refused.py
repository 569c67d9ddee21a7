"""Refused messages and declined calls are stored; the oldest are deleted first."""

from edge.store import refused
from edge.store.client import Store
from edge.store.refused import DECLINED_COUNTER, RefusedMessage, record_decline, record_refusal


def message(number: int) -> RefusedMessage:
    return RefusedMessage("app/jobs/s/commands", "t", str(number), "unreadable", "no event", "größe".encode())


async def test_refused_messages_are_read_newest_first(store: Store) -> None:
    assert (await refused.newest(store, 5), await refused.count(store)) == ([], 0)
    for number in range(3):
        await store.commit(record_refusal(store.keys, message(number)))
    assert await refused.newest(store, 2) == [message(2), message(1)]
    assert await refused.count(store) == 3


async def test_stream_is_bounded_and_counter_is_not(store: Store) -> None:
    for number in range(1300):
        await store.commit(record_refusal(store.keys, message(number)))
    assert await store.execute("XLEN", store.keys.event_refused_list()) < 1200
    assert await refused.count(store) == 1300


async def test_long_texts_are_truncated(store: Store) -> None:
    endless = "x" * 100_000
    await store.commit(
        record_refusal(store.keys, RefusedMessage(endless, endless, endless, "unreadable", endless, b""))
    )
    (kept,) = await refused.newest(store, 1)
    assert {len(text) for text in (kept.way, kept.event_type, kept.event_id, kept.reason)} == {1000}


async def test_declined_call_is_counted_separately_from_refused_messages(store: Store) -> None:
    await store.commit(record_decline(store.keys, message(1)))
    assert await refused.newest(store, 2) == [message(1)]
    assert (await refused.count(store), await refused.count(store, DECLINED_COUNTER)) == (0, 1)
