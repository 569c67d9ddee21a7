"""The stream of samples: bounded, taken once, acknowledged or dead-lettered."""

from edge.config import RedisSettings
from edge.store import stream_of_samples as tags
from edge.store import stream_of_samples as telemetry
from edge.store.client import Store
from edge.store.open_store import open_store


async def test_entries_are_taken_once_and_stay_for_other_readers(store: Store) -> None:
    await telemetry.create_group(store)
    await telemetry.create_group(store)
    await store.commit(telemetry.append(store.keys, {"a": "1"}, 10))
    (entry,) = await telemetry.take_new(store, 1)
    assert entry.fields == {"a": "1"}
    assert await telemetry.take_new(store, 1) == []
    assert await telemetry.read_pending(store, "0") == [entry]
    assert await telemetry.read_pending(store, entry.entry_id) == []
    await store.commit(telemetry.acknowledge(store.keys, (entry.entry_id,)))
    assert await telemetry.read_pending(store, "0") == []
    assert await store.execute("XLEN", store.keys.telemetry()) == 1


async def test_stream_is_bounded(store: Store) -> None:
    for _ in range(500):
        await store.commit(telemetry.append(store.keys, {"a": "1"}, 100))
    assert await store.execute("XLEN", store.keys.telemetry()) < 300


async def test_entries_of_another_consumer_are_claimed(store: Store, redis: RedisSettings) -> None:
    async with open_store(redis, "other") as other:
        await telemetry.create_group(other)
        for _ in range(3):
            await store.commit(telemetry.append(store.keys, {"a": "1"}, 10))
        entries = await telemetry.take_new(other, 1)
    assert await telemetry.claim_from_others(store) == 3
    assert await telemetry.read_pending(store, "0") == entries
    assert await telemetry.claim_from_others(store) == 0


async def test_deliveries_are_counted_until_the_entry_is_dead_lettered(store: Store) -> None:
    await telemetry.create_group(store)
    await store.commit(telemetry.append(store.keys, {"a": "1"}, 10))
    (entry,) = await telemetry.take_new(store, 1)
    assert [await telemetry.count_delivery(store, entry.entry_id) for _ in range(3)] == [2, 3, 4]
    await store.commit(telemetry.dead_letter(store.keys, entry, "defect", 5))
    await store.commit(telemetry.acknowledge(store.keys, [entry.entry_id]))
    assert await telemetry.read_pending(store, "0") == []
    ((_, fields),) = await store.execute("XRANGE", store.keys.telemetry_dlq(), "-", "+")
    letter = dict(zip(fields[::2], fields[1::2], strict=True)) if isinstance(fields, list) else fields
    assert letter == {"id": entry.entry_id, "at": "5", "reason": "defect", "fields": '{"a":"1"}'}


async def test_tags_are_read_in_the_order_of_their_names(store: Store) -> None:
    assert await tags.load_last(store) == {}
    await store.commit(tags.save_last(store.keys, {"b": "2", "a": "1"}))
    await store.commit(tags.save_last(store.keys, {"b": "3"}))
    assert list((await tags.load_last(store)).items()) == [("a", "1"), ("b", "3")]


async def test_tags_of_gateways_are_kept_apart(store: Store) -> None:
    written = {"gateway.t[edge]": "own", "gateway.t[other]": "theirs", "equipment.w.c[other]": "one", "a[b]": "tag"}
    await store.commit(tags.save_last(store.keys, {"gateway.t": "former"}))
    await store.commit(tags.save_last(store.keys, written, {"gateway.t"}))
    assert await tags.load_last(store) == {
        "a[b]": "tag",
        "equipment.w.c": "one",
        "gateway.t": "own",
        "gateway.t[other]": "theirs",
    }
    names = ("gateway.t", "gateway.t[other]", "equipment.w.c", "unknown")
    assert [await tags.load_last_of(store, name) for name in names] == ["own", "theirs", "one", None]
