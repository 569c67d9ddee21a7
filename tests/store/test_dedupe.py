"""A repeated event is recognized by its source and id."""

import pytest
from msgspec.structs import replace

from edge.foundation.errors import Refused
from edge.sfc.run import ActionState, PastAttempt, Run, new_run
from edge.store import dedupe
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from edge.store.dedupe import MOST_TAKEN, DiscardedEvent


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


HALF_HOUR = 1_800_000
EVENT = DiscardedEvent("wrench", "/wrench", "1", 100 * HALF_HOUR)


async def _is_known(store: Store, event: DiscardedEvent) -> bool:
    queries = event.query_known(store.keys), event.query_known_before(store.keys)
    replies = await store.fetch_all(*queries)
    return any(replies.value(query) for query in queries)


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


EMPTY = new_run("J1", "station-1", "R1", {})


def run_of(*results: object) -> Run:
    past = {
        number: PastAttempt("a", "A", number, ActionState.COMPLETED, result=result)
        for number, result in enumerate(results, 1)
    }
    return replace(EMPTY, past=past)


async def bury(store: Store, run: Run) -> None:
    await store.commit(dedupe.bury(store.keys, "J1", "s-1", 17, 60_000, dedupe.digests_of(run)))


async def test_result_belongs_to_its_command(store: Store) -> None:
    await bury(store, run_of({"ok": True}, None))
    taken = [await dedupe.was_taken(store, "J1", f"J1/R1/a/{number}", {"ok": True}) for number in (1, 2)]
    assert taken == [True, False]
    assert not await dedupe.was_taken(store, "J1", "J1/R1/a/1", {"ok": False})
    assert not await dedupe.was_taken(store, "J2", "J1/R1/a/1", {"ok": True})


async def test_tombstone_holds_the_instant_and_a_bounded_number_of_results(store: Store) -> None:
    most = 2 * MOST_TAKEN
    await bury(store, run_of(*({"torque": number} for number in range(1, most + 1))))
    assert await store.fetch(dedupe.query_removal(store.keys, "J1")) == 17
    taken = await store.fetch(dedupe.query_taken(store.keys, "J1"))
    assert len(taken) == MOST_TAKEN
    newest = f"J1/R1/a/{most}"
    assert await dedupe.was_taken(store, "J1", newest, {"torque": most})


async def test_tombstone_has_the_scope_unless_it_is_of_an_earlier_release(store: Store) -> None:
    await bury(store, EMPTY)
    assert await store.execute("GET", store.keys.joborder_tombstone("J1")) == "17 /s-1"
    assert await dedupe.load_scope_of_removed(store, "J1") == "s-1"
    await store.execute("SET", store.keys.joborder_tombstone("J1"), "17 abc")
    assert await dedupe.load_scope_of_removed(store, "J1") == ""
    assert await store.fetch(dedupe.query_taken(store.keys, "J1")) == {"abc"}
