"""Locks at a real store: held for a block, transferred in order, expired, deleted with an audit record."""

import asyncio
from collections.abc import Sequence

import pytest

from edge.access.locks import (
    delete_locks,
    find_locks,
    hold_lock,
    keep_swept,
    plan_acquire,
    plan_release,
    sweep_locks,
)
from edge.foundation.errors import Refused
from edge.foundation.task_group import background_task
from edge.model.lock import Lock, LockClaim, LockKind
from edge.store import locks
from edge.store.client import Store
from edge.store.commit import Commit, Committed, Stale, join, operation
from edge.store.locks import StoredLock
from edge.store.server_time import server_time

JOB, TOOL = LockKind.JOB, LockKind.EQUIPMENT


async def put(store: Store, kind: LockKind, object_id: str, *owners: str, lease_ms: int = 60_000) -> None:
    now = await server_time(store)
    first, *others = (LockClaim(owner=owner, since=now, until=now + lease_ms) for owner in owners)
    lock = Lock(holder=first, waiters=tuple(others))
    assert isinstance(
        await store.commit(locks.save(store.keys, StoredLock(kind, object_id, None, None), lock)), Committed
    )


async def owners(store: Store, kind: LockKind, object_id: str) -> list[str]:
    (stored_lock,) = await locks.load(store, kind, [object_id])
    return (
        [stored_lock.lock.holder.owner, *(waiter.owner for waiter in stored_lock.lock.waiters)]
        if stored_lock.lock
        else []
    )


async def nothing(_: Sequence[StoredLock]) -> Commit:
    return Commit()


async def test_concurrent_blocks_hold_a_lock_one_after_another(store: Store) -> None:
    inside: list[str] = []

    async def work(name: str) -> None:
        async with hold_lock(store, JOB, "J1", name, "test", wait_s=60, look_every_s=0.005):
            inside.append(name)
            assert await owners(store, JOB, "J1") != []
            await asyncio.sleep(0)
            assert inside[-1] == name

    await asyncio.gather(*(work(str(number)) for number in range(8)))
    assert sorted(inside) == [str(number) for number in range(8)]
    assert await owners(store, JOB, "J1") == []


async def test_lock_timeout_is_refused_and_leaves_the_queue(store: Store) -> None:
    await put(store, JOB, "J1", "anna")
    with pytest.raises(Refused, match="held by 'anna'"):
        async with hold_lock(store, JOB, "J1", "ben", "test", wait_s=0.01):
            pytest.fail("it was held")
    assert await owners(store, JOB, "J1") == ["anna"]


async def test_lease_of_a_live_owner_is_renewed(store: Store) -> None:
    async with hold_lock(store, JOB, "J1", "anna", "test", lease_ms=3_000):
        (before,) = await locks.load(store, JOB, ["J1"])
        async with asyncio.timeout(30):
            while (await locks.load(store, JOB, ["J1"]))[0].text == before.text:  # noqa: ASYNC110 - the store has no event
                await asyncio.sleep(0.05)


async def test_locks_of_a_step_are_part_of_its_commit(store: Store) -> None:
    now = await server_time(store)
    claims = [LockClaim(owner=text, since=now) for text in ("J1", "J2")]
    first = await plan_acquire(store, TOOL, ("wrench", "crane"), claims[0])
    late = await plan_acquire(store, TOOL, ("crane",), claims[1])
    step = operation("INCR", store.keys.counter("steps"))
    assert first.is_held
    assert isinstance(await store.commit(join((first.commit, step))), Committed)
    # It was planned before the commit of the other.
    assert isinstance(await store.commit(join((late.commit, step))), Stale)
    waiting = await plan_acquire(store, TOOL, ("wrench", "crane"), claims[1])
    assert (waiting.is_held, waiting.missing, waiting.holder) == (False, "crane", "J1")
    await store.commit(join((waiting.commit, step)))
    assert await owners(store, TOOL, "wrench") == ["J1"]
    await store.commit(await plan_release(store, TOOL, ("crane", "wrench"), "J1", now))
    assert await owners(store, TOOL, "crane") == ["J2"]
    assert (await plan_acquire(store, TOOL, ("wrench", "crane"), claims[1])).is_held
    assert await store.execute("GET", store.keys.counter("steps")) == "2"


async def test_sweep_transfers_the_locks_of_dead_owners(store: Store) -> None:
    await put(store, JOB, "J1", "dead", lease_ms=-1)
    await put(store, TOOL, "wrench", "alive")
    await sweep_locks(store)
    assert [(lock.kind, lock.object_id) for lock in await find_locks(store, LockKind, ())] == [(TOOL, "wrench")]


async def test_sweep_is_repeated(store: Store) -> None:
    async with background_task(keep_swept(store, 0.01), "sweep"):
        await put(store, JOB, "J1", "dead", lease_ms=-1)
        async with asyncio.timeout(60):
            while await owners(store, JOB, "J1"):  # noqa: ASYNC110 - the store has no event
                await asyncio.sleep(0.01)


async def test_lock_of_a_live_owner_is_deleted_only_by_force(store: Store) -> None:
    await put(store, JOB, "J1", "anna", "ben")
    await put(store, JOB, "J2", "dead", lease_ms=-1)
    stored_locks = await find_locks(store, LockKind, ())
    with pytest.raises(Refused, match="'anna' holds the lock of job 'J1' and is alive"):
        await delete_locks(store, stored_locks, nothing)
    assert await owners(store, JOB, "J2") == ["dead"]
    await delete_locks(store, stored_locks, nothing, force=True)
    assert await owners(store, JOB, "J1") == ["ben"]
    assert await owners(store, JOB, "J2") == []


async def test_deletion_of_a_changed_lock_is_refused(store: Store) -> None:
    await put(store, JOB, "J1", "dead", lease_ms=-1)
    stored_locks = await find_locks(store, (JOB,), ("J1",))
    async with hold_lock(store, JOB, "J1", "anna", "test"):
        with pytest.raises(Refused, match="anna"):
            await delete_locks(store, stored_locks, nothing)
