"""Dead letters have a lifetime and a limit, and can be deleted."""

import pytest
from msgspec.structs import replace

from edge.app.redaction import public_refused
from edge.foundation.text import Text
from edge.station.public_letter import public_letter
from edge.store import dead_letters
from edge.store.client import Store
from edge.store.dead_letters import (
    DECLINED_COUNTER,
    STREAM_LENGTH,
    Letter,
    LetterKind,
    RefusedMessage,
    record_decline,
    record_refusal,
)

LETTER = Letter(LetterKind.COMMAND, "s", "J 1:ü", 'no "way"', 1_700_000_000_000, {"phase": "stop", "type_id": "a.v1"})


async def test_letter_is_read_as_it_was_written_and_deleted(store: Store) -> None:
    for _ in range(2):
        await store.commit(dead_letters.add(store.keys, LETTER, 60_000))
    letters = await dead_letters.load_all(store)
    assert list(letters.values()) == [LETTER, LETTER]
    first, second = letters
    await store.commit(dead_letters.delete(store.keys, first))
    assert list(await dead_letters.load_all(store)) == [second]


async def test_letters_have_a_lifetime_and_a_limit(store: Store) -> None:
    for _ in range(STREAM_LENGTH + 300):
        await store.commit(dead_letters.add(store.keys, LETTER, 60_000))
    assert 0 < await store.execute("PTTL", store.keys.sfc_dead_letters()) <= 60_000
    assert len(await dead_letters.load_all(store)) < STREAM_LENGTH + 200


async def test_late_results_displace_no_dead_letter(store: Store) -> None:
    await store.commit(dead_letters.add(store.keys, LETTER, 60_000))
    late = replace(LETTER, kind=LetterKind.LATE)
    for _ in range(1200):
        await store.commit(dead_letters.add(store.keys, late, 60_000))
    letters = await dead_letters.load_all(store)
    assert next(iter(letters.values())) == LETTER
    assert len(letters) < 1200
    *_, newest = letters
    await store.commit(dead_letters.delete(store.keys, newest))
    assert newest not in await dead_letters.load_all(store)


def message(number: int) -> RefusedMessage:
    return RefusedMessage("app/jobs/s/commands", "t", str(number), "unreadable", "no event", "größe".encode())


async def test_refused_messages_are_read_newest_first(store: Store) -> None:
    assert (await dead_letters.newest_refused(store, 5), await dead_letters.count_refused(store)) == ([], 0)
    for number in range(3):
        await store.commit(record_refusal(store.keys, message(number)))
    assert [replace(refusal, at=None) for refusal in await dead_letters.newest_refused(store, 2)] == [
        message(2),
        message(1),
    ]
    assert await dead_letters.count_refused(store) == 3


async def test_stream_is_bounded_and_counter_is_not(store: Store) -> None:
    for number in range(1300):
        await store.commit(record_refusal(store.keys, message(number)))
    assert await store.execute("XLEN", store.keys.event_refused_list()) < 1200
    assert await dead_letters.count_refused(store) == 1300


async def test_long_texts_are_truncated(store: Store) -> None:
    endless = "x" * 100_000
    await store.commit(
        record_refusal(store.keys, RefusedMessage(endless, endless, endless, "unreadable", endless, b""))
    )
    (refused,) = await dead_letters.newest_refused(store, 1)
    assert {len(text) for text in (refused.way, refused.event_type, refused.event_id, str(refused.reason))} == {1000}


async def test_declined_call_is_counted_separately_from_refused_messages(store: Store) -> None:
    await store.commit(record_decline(store.keys, message(1)))
    (declined,) = await dead_letters.newest_refused(store, 2)
    assert replace(declined, at=None) == message(1)
    assert (await dead_letters.count_refused(store), await dead_letters.count_refused(store, DECLINED_COUNTER)) == (
        0,
        1,
    )


REASON = Text.of(
    "{what} met a defect of this software: {name}: {reason}", what=Text.of("its start"), name="E", reason="x"
)


async def test_reason_of_a_letter_is_kept_for_readers_of_each_language(store: Store) -> None:
    """Pages in German and French showed it in English."""
    await store.commit(dead_letters.add(store.keys, Letter(LetterKind.START, "s", "J1", REASON, 0), 60_000))
    ((letter_id, letter),) = (await dead_letters.load_all(store)).items()
    assert letter.reason == REASON
    assert public_letter(letter_id, letter, "de").reason == "sein Start traf auf einen Fehler dieser Software: E: x"
    (entry,) = await store.execute("XRANGE", store.keys.sfc_dead_letters(), "-", "+")
    assert entry[1]["reason"] == "its start met a defect of this software: E: x"


@pytest.mark.parametrize("value", ["password=sesame1", "y" * 2000])
async def test_reason_with_a_secret_or_a_long_value_is_kept_in_english(store: Store, value: str) -> None:
    reason = Text.of("{count} objects read", count=value)
    await store.commit(record_refusal(store.keys, replace(message(1), reason=reason)))
    (refused,) = await dead_letters.newest_refused(store, 1)
    assert isinstance(refused.reason, str)
    assert "sesame1" not in refused.reason
    assert len(refused.reason) <= 1000


async def test_reason_of_an_earlier_version_is_still_read(store: Store) -> None:
    await store.commit(record_refusal(store.keys, replace(message(1), reason="it was refused by an earlier version")))
    (refused,) = await dead_letters.newest_refused(store, 1)
    assert public_refused(refused, "de").reason == "it was refused by an earlier version"
