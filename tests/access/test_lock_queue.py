"""Waiting owners get a lock in their order; a dead one is skipped."""

from hypothesis import given
from hypothesis import strategies as st

from edge.access.lock_queue import acquire, expire, is_held_by, release
from edge.model.lock import Lock, LockClaim

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
