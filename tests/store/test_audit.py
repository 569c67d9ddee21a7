"""Sealed records are appended after the head that was read; the oldest are deleted beyond the limit."""

from edge.model.audit import ChainHead, SealedRecord
from edge.store import audit
from edge.store.client import Store
from edge.store.commit import Committed, Stale


def sealed(number: int) -> SealedRecord:
    return SealedRecord(number, f"digest {number}", f"text {number}")


async def test_append_behind_another_head_is_stale(store: Store) -> None:
    start = await audit.load_head(store)
    assert start == ChainHead(0, "")
    assert await store.commit(audit.append(store.keys, start, [sealed(1), sealed(2)], 100)) == Committed()
    assert await audit.load_head(store) == ChainHead(2, "digest 2")
    assert await store.commit(audit.append(store.keys, start, [sealed(1)], 100)) == Stale(store.keys.audit_head())
    assert await audit.newest(store, 9) == [sealed(1), sealed(2)]
    assert await audit.newest(store, 1) == [sealed(2)]


async def test_oldest_records_are_deleted_beyond_the_limit(store: Store) -> None:
    head = await audit.load_head(store)
    records = [sealed(number) for number in range(1, 1501)]
    await store.commit(audit.append(store.keys, head, records, 1000))
    sealed_records = [sealed_record async for sealed_record in audit.read_all(store)]
    assert 1000 <= len(sealed_records) < 1500
    assert sealed_records == records[-len(sealed_records) :]


async def test_invalid_entry_is_read_as_number_zero(store: Store) -> None:
    await store.execute("XADD", store.keys.audit(), "*", "number", "²", "other", "x")
    assert await audit.newest(store, 1) == [SealedRecord(0, "", "")]


async def test_record_of_a_call_is_claimed_once_for_a_day(store: Store) -> None:
    now, day = 1_700_000_000_000, 86_400_000

    async def claimed(name: str, at: int) -> bool:
        claim = audit.call_claim("/mes", name, at)
        _, (was_claimed,) = await audit.load_start(store, [claim])
        is_committed = isinstance(await store.commit(audit.claim(store.keys, [claim])), Committed)
        assert is_committed is not was_claimed
        return is_committed

    assert await claimed("1", now)
    assert not await claimed("1", now)
    assert not await claimed("1", now + day)
    assert await claimed("2", now + day)
    assert await claimed("1", now + 3 * day)
