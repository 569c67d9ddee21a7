"""Dead letters have a lifetime and a limit, and can be deleted."""

from msgspec.structs import replace

from edge.store import dead_letters
from edge.store.client import Store
from edge.store.dead_letters import STREAM_LENGTH, Letter, LetterKind

LETTER = Letter(LetterKind.COMMAND, "s", "J 1:ü", 'no "way"', 1_700_000_000_000, {"phase": "stop", "type_id": "a.v1"})


async def test_letter_is_read_as_it_was_written_and_deleted(store: Store) -> None:
    for _ in range(2):
        await store.commit(dead_letters.add(store.keys, LETTER, 60_000))
    found = await dead_letters.load_all(store)
    assert list(found.values()) == [LETTER, LETTER]
    first, second = found
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
    found = await dead_letters.load_all(store)
    assert next(iter(found.values())) == LETTER
    assert len(found) < 1200
    *_, newest = found
    await store.commit(dead_letters.delete(store.keys, newest))
    assert newest not in await dead_letters.load_all(store)
