"""What is set aside stays for a while, the newest longest."""

from edge.store import refused
from edge.store.client import Store
from edge.store.refused import RefusedMessage, record_refusal


def message(number: int) -> RefusedMessage:
    return RefusedMessage("app/jobs/s/commands", "t", str(number), "unreadable", "no event", "größe".encode())


async def test_what_is_set_aside_is_read_back_the_newest_first(store: Store) -> None:
    assert (await refused.newest(store, 5), await refused.count(store)) == ([], 0)
    for number in range(3):
        await store.commit(record_refusal(store.keys, message(number)))
    assert await refused.newest(store, 2) == [message(2), message(1)]
    assert await refused.count(store) == 3


async def test_only_the_newest_are_kept_and_all_are_counted(store: Store) -> None:
    for number in range(1300):
        await store.commit(record_refusal(store.keys, message(number)))
    assert await store.execute("XLEN", store.keys.event_refused_list()) < 1200
    assert await refused.count(store) == 1300


async def test_of_a_text_without_end_only_the_beginning_is_kept(store: Store) -> None:
    endless = "x" * 100_000
    await store.commit(
        record_refusal(store.keys, RefusedMessage(endless, endless, endless, "unreadable", endless, b""))
    )
    (kept,) = await refused.newest(store, 1)
    assert {len(each) for each in (kept.way, kept.event_type, kept.event_id, kept.reason)} == {1000}
