"""A repeated event is recognized by its source and id."""

import pytest

from edge.foundation.errors import Refused
from edge.store import dedupe
from edge.store.client import Store
from edge.store.commit import Committed, Stale


async def test_the_answer_to_an_event_is_remembered_for_its_time(store: Store) -> None:
    assert await dedupe.load_answer(store, "mes", "1") is None
    assert await store.commit(dedupe.mark(store.keys, "mes", "1", '{"status": 1}', 60_000)) == Committed()
    assert await dedupe.load_answer(store, "mes", "1") == '{"status": 1}'
    (key,) = await store.execute("KEYS", f"{store.keys.prefix}:cededupe:*")
    assert 0 < await store.execute("PTTL", key) <= 60_000


async def test_an_event_is_marked_once(store: Store) -> None:
    await store.commit(dedupe.mark(store.keys, "mes", "1", "first", 60_000))
    assert isinstance(await store.commit(dedupe.mark(store.keys, "mes", "1", "second", 60_000)), Stale)
    assert await dedupe.load_answer(store, "mes", "1") == "first"


@pytest.mark.parametrize(("source", "event_id"), [("mes", "2"), ("me", "s1"), ("mes1", ""), ("MES", "1"), ("", "mes1")])
async def test_another_source_or_id_is_another_event(store: Store, source: str, event_id: str) -> None:
    await store.commit(dedupe.mark(store.keys, "mes", "1", "given", 60_000))
    assert await dedupe.load_answer(store, source, event_id) is None


async def test_a_source_and_id_may_hold_any_text(store: Store) -> None:
    source, event_id = "urn:größe/ü x", "a:b/{c}*\n" + "x" * 5000
    await store.commit(dedupe.mark(store.keys, source, event_id, "given", 60_000))
    assert await dedupe.load_answer(store, source, event_id) == "given"


async def test_a_transaction_is_marked_once_in_its_scope(store: Store) -> None:
    keys = store.keys
    new = dedupe.transaction_is_new(keys, "s", "t")
    assert isinstance(await store.commit(new), Committed)
    assert isinstance(await store.commit(dedupe.mark_transaction(keys, "s", "t", "first", 10_000, "mes")), Committed)
    assert isinstance(await store.commit(dedupe.mark_transaction(keys, "s", "t", "second", 10_000, "mes")), Stale)
    assert isinstance(await store.commit(new), Stale)
    assert await store.fetch(dedupe.query_transaction_answer(keys, "s", "t")) == "first"
    assert await store.fetch(dedupe.query_transaction_answer(keys, "st", "")) is None


@pytest.mark.parametrize("answer", ['{"status": 1}', "[1]", "Drain", ""])
def test_answer_of_another_message_kind_is_refused_as_repeated_id(answer: str) -> None:
    with pytest.raises(Refused) as caught:
        dedupe.decode_answer(answer, tuple[str, ...])
    assert caught.value.kind == "repeated_id"
    assert dedupe.decode_answer('["warning"]', tuple[str, ...]) == ("warning",)
