"""Locks at a real store: held for a block, transferred in order, expired, deleted with an audit record."""

import asyncio
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.access.locks import (
    acquire,
    delete_locks,
    expire,
    find_locks,
    hold_lock,
    is_held_by,
    keep_swept,
    plan_acquire,
    plan_release,
    release,
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


LEASE = 10


def claim(owner: str, now: int, lease: int | None = LEASE) -> LockClaim:
    return LockClaim(owner=owner, since=now, until=None if lease is None else now + lease)


def order(lock: Lock | None) -> list[str]:
    return [lock.holder.owner, *(waiter.owner for waiter in lock.waiters)] if lock else []


def test_waiting_owners_get_the_lock_in_order() -> None:
    lock = None
    for owner in "abc":
        lock = acquire(lock, claim(owner, 1))
    assert order(lock) == ["a", "b", "c"]
    without_a = release(lock, "a", 2)
    assert order(without_a) == ["b", "c"]
    without_c = release(without_a, "c", 2)
    assert order(without_c) == ["b"]
    assert order(release(without_c, "b", 2)) == []


def test_repeated_acquire_keeps_the_place_and_renews_the_lease() -> None:
    lock = acquire(acquire(acquire(None, claim("a", 1)), claim("b", 1)), claim("c", 1))
    lock = acquire(acquire(lock, claim("c", 8)), claim("a", 9))
    assert order(lock) == ["a", "b", "c"]
    assert [lock.holder.until, *(waiter.until for waiter in lock.waiters)] == [19, 11, 18]
    assert lock.holder.since == 1


def test_lock_of_a_dead_owner_goes_to_the_first_live_waiter() -> None:
    lock = acquire(acquire(acquire(None, claim("a", 1)), claim("b", 1)), claim("c", 8))
    assert order(expire(lock, 10)) == ["a", "b", "c"]
    assert order(expire(lock, 11)) == ["c"]
    assert expire(lock, 18) is None
    assert order(acquire(lock, claim("d", 12))) == ["c", "d"]


def test_claim_without_a_lease_is_kept_until_release() -> None:
    lock = acquire(acquire(None, claim("a", 1, None)), claim("b", 10**9))
    assert order(expire(lock, 10**9)) == ["a", "b"]
    assert order(release(lock, "a", 10**9)) == ["b"]


def test_release_by_another_owner_is_ignored() -> None:
    lock = acquire(None, claim("a", 1))
    assert release(lock, "b", 2) == lock
    assert release(None, "b", 2) is None


@given(st.lists(st.tuples(st.sampled_from("ar"), st.sampled_from("abcd"), st.integers(0, 4)), max_size=40))
def test_no_owner_overtakes_or_waits_for_a_free_lock(steps: list[tuple[str, str, int]]) -> None:
    lock: Lock | None = None
    queue: list[tuple[str, int]] = []  # the model: owners in their order, with the end of their lease
    now = 0
    for what, owner, passed in steps:
        now += passed
        queue = [row for row in queue if row[1] > now]
        if what == "a":
            lock = acquire(lock, claim(owner, now))
            known = [text for text, _ in queue]
            renewed = (owner, now + LEASE)
            queue = [renewed if row[0] == owner else row for row in queue] if owner in known else [*queue, renewed]
        else:
            lock = release(lock, owner, now)
            queue = [row for row in queue if row[0] != owner]
        assert order(expire(lock, now)) == [text for text, _ in queue]
        assert all(is_held_by(expire(lock, now), text) is (text == queue[0][0]) for text, _ in queue)
