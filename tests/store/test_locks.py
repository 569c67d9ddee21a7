"""Locks are stored in one hash per kind and changed only under the revision that was read."""

from edge.model.lock import Lock, LockClaim, LockKind
from edge.store import locks
from edge.store.client import Store
from edge.store.commit import Committed, Stale

LOCK = Lock(holder=LockClaim(owner="J1", since=5))


async def test_lock_is_read_as_it_was_written(store: Store) -> None:
    (free,) = await locks.load(store, LockKind.EQUIPMENT, ["wrench"])
    assert isinstance(await store.commit(locks.save(store.keys, free, LOCK)), Committed)
    (stored_lock,) = await locks.load_all(store, LockKind)
    assert (stored_lock.kind, stored_lock.object_id, stored_lock.lock) == (LockKind.EQUIPMENT, "wrench", LOCK)
    assert await store.execute("HKEYS", f"{store.keys.prefix}:locks:equipment") == ["wrench"]
    assert isinstance(await store.commit(locks.save(store.keys, free, LOCK)), Stale)
    assert isinstance(await store.commit(locks.save(store.keys, stored_lock, LOCK)), Committed)
    assert isinstance(await store.commit(locks.save(store.keys, stored_lock, None)), Committed)
    assert isinstance(await store.commit(locks.save(store.keys, stored_lock, None)), Stale)
    assert await locks.load_all(store, LockKind) == []
    assert await locks.load(store, LockKind.JOB, []) == []


async def test_unreadable_lock_counts_as_free_and_is_replaced(store: Store) -> None:
    await store.execute("HSET", store.keys.locks("job"), "J1", "{not a lock")
    (stored_lock,) = await locks.load(store, LockKind.JOB, ["J1"])
    assert stored_lock.lock is None
    assert isinstance(await store.commit(locks.save(store.keys, stored_lock, LOCK)), Committed)
    assert (await locks.load(store, LockKind.JOB, ["J1"]))[0].lock == LOCK
