"""Acquires, renews, releases and deletes locks in the store.

`LockPlan.commit` may be joined to the commit of a step: the step then holds its locks from that commit on.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from typing import Final

import structlog
from msgspec import Struct

from edge.access.lock_queue import acquire, expire, is_held_by, release
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.model.lock import Lock, LockClaim, LockKind
from edge.store import locks
from edge.store.background import poll_store, renewal
from edge.store.client import Store
from edge.store.commit import Commit, Committed, join
from edge.store.locks import StoredLock
from edge.store.server_time import server_time

logger = structlog.get_logger(__name__)

LEASE_MS: Final = 10_000
"""How long a lock outlives an owner that no longer renews it. Locks of jobs have no lease."""
_RENEW_EVERY_S = 2.0
_LOOK_EVERY_S = 0.2
SWEEP_EVERY_S: Final = 10.0


class LockPlan(Struct, frozen=True):
    """Whether an owner holds all locks after the commit; else it waits for `missing`, and asks again."""

    commit: Commit
    missing: str = ""
    holder: str = ""
    """Who holds the missing one."""

    @property
    def is_held(self) -> bool:
        """Whether every lock is held."""
        return not self.missing


async def find_locks(store: Store, kinds: Iterable[LockKind], object_ids: Iterable[str]) -> list[StoredLock]:
    """Return the locks of some kinds that exist; with ids, only those of these objects."""
    wanted = frozenset(object_ids)
    return [
        stored_lock
        for stored_lock in await locks.load_all(store, kinds)
        if not wanted or stored_lock.object_id in wanted
    ]


async def plan_acquire(store: Store, kind: LockKind, object_ids: Iterable[str], claim: LockClaim) -> LockPlan:
    """Return the plan by which an owner holds the locks of some objects, or waits for the first that is not free.

    Locks are acquired in the order of their ids, for every owner: two owners never wait for each other. The commit is
    Stale at the key of the locks when one of them was changed meanwhile: plan again.
    """
    parts: list[Commit] = []
    for before in await locks.load(store, kind, sorted(set(object_ids))):
        after = acquire(before.lock, claim)
        parts.append(locks.save(store.keys, before, after))
        if not is_held_by(after, claim.owner):
            return LockPlan(join(parts), before.object_id, after.holder.owner)
    return LockPlan(join(parts))


async def plan_release(store: Store, kind: LockKind, object_ids: Iterable[str], owner: str, now: int) -> Commit:
    """Return the commit that releases the locks of an owner, and its place among those that wait."""
    stored_locks = await locks.load(store, kind, sorted(set(object_ids)))
    return join(
        locks.save(store.keys, stored_lock, release(stored_lock.lock, owner, now)) for stored_lock in stored_locks
    )


@asynccontextmanager
async def hold_lock(
    store: Store,
    kind: LockKind,
    object_id: str,
    owner: str,
    reason: str | Text,
    *,
    wait_s: float = 0.0,
    lease_ms: int = LEASE_MS,
    look_every_s: float = _LOOK_EVERY_S,
) -> AsyncIterator[None]:
    """Acquire a lock, renew its lease while the block runs, and release it at the end.

    Raises Refused(`locked`) when it is not free within `wait_s` seconds, Unavailable when the store is gone.
    """

    async def attempt() -> LockPlan:
        now = await server_time(store)
        claim = LockClaim(owner=owner, reason=reason, since=now, until=now + lease_ms)
        while True:
            plan = await plan_acquire(store, kind, (object_id,), claim)
            if isinstance(await store.commit(plan.commit), Committed):
                return plan

    async def renew() -> None:
        with renewal(Text.of("the lock of {kind} {object_id}", kind=kind.text, object_id=object_id)):
            plan = await attempt()
        if not plan.is_held:
            logger.error("lock lost", kind=kind, object=object_id, holder=plan.holder)

    try:
        await _wait_until_held(attempt, kind, object_id, wait_s, look_every_s)
        async with background_task(_renew_forever(store, renew), f"lease of {kind} {object_id}"):
            yield
    finally:
        await _release(store, kind, object_id, owner)


async def delete_locks(
    store: Store,
    found: Sequence[StoredLock],
    audit: Callable[[Sequence[StoredLock]], Awaitable[Commit]],
    *,
    force: bool = False,
) -> None:
    """Delete the claims of the holders of these locks: those that wait continue. `audit` adds the record to the commit.

    Raises Refused(`locked`) while an owner lives, unless forced; nothing is deleted then.
    """
    while True:
        now = await server_time(store)
        alive = [
            stored_lock for stored_lock in found if stored_lock.lock and not stored_lock.lock.holder.has_expired(now)
        ]
        if alive and not force:
            first = alive[0]
            owner = first.lock.holder.owner if first.lock else ""
            message = Text.of(
                "{owner!r} holds the lock of {kind} {object_id!r} and is alive.",
                owner=owner,
                kind=first.kind.text,
                object_id=first.object_id,
            )
            raise Refused(
                "locked",
                message,
                "Wait for its end, or use --force when you know that it is gone.",
            )
        parts = [locks.save(store.keys, stored_lock, _without_holder(stored_lock.lock, now)) for stored_lock in found]
        if isinstance(await store.commit(join((*parts, await audit(found)))), Committed):
            return
        found = [
            again
            for stored_lock in found
            for again in await locks.load(store, stored_lock.kind, (stored_lock.object_id,))
            if again.text is not None
        ]


async def sweep_locks(store: Store) -> None:
    """Pass on or remove every lock whose owner is dead. Raises Unavailable when the store is gone."""
    stored_locks = await locks.load_all(store, LockKind)
    if not stored_locks:
        return
    now = await server_time(store)
    for lock in stored_locks:
        after = expire(lock.lock, now)
        if after != lock.lock:
            # Stale: another instance was faster.
            await store.commit(locks.save(store.keys, lock, after))
            owner = lock.lock.holder.owner if lock.lock else ""
            logger.warning("lock expired", kind=lock.kind, object=lock.object_id, owner=owner)


async def keep_swept(store: Store, every_s: float = SWEEP_EVERY_S) -> None:
    """Remove expired locks until cancelled; retry while the store is unavailable."""

    async def sweep() -> None:
        await sweep_locks(store)

    await poll_store(store.defects, "locks", sweep, every_s)


async def _wait_until_held(
    attempt: Callable[[], Awaitable[LockPlan]], kind: LockKind, object_id: str, wait_s: float, look_every_s: float
) -> None:
    loop = asyncio.get_running_loop()
    until = loop.time() + wait_s
    while not (plan := await attempt()).is_held:
        if loop.time() >= until:
            message = Text.of(
                "the lock of {kind} {object_id!r} is held by {holder!r}.",
                kind=kind.text,
                object_id=object_id,
                holder=plan.holder,
            )
            raise Refused("locked", message, "Wait for its end; `edge locks list` shows all locks.")
        await asyncio.sleep(look_every_s)


async def _renew_forever(store: Store, renew: Callable[[], Awaitable[None]]) -> None:
    await asyncio.sleep(_RENEW_EVERY_S)
    await poll_store(store.defects, "lock", renew, _RENEW_EVERY_S)


async def _release(store: Store, kind: LockKind, object_id: str, owner: str) -> None:
    """Release a lock; one that cannot be released expires."""
    try:
        while True:
            commit = await plan_release(store, kind, (object_id,), owner, await server_time(store))
            if isinstance(await store.commit(commit), Committed):
                return
    except Unavailable as error:
        logger.warning("lock not released", kind=kind, object=object_id, reason=error.message)


def _without_holder(lock: Lock | None, now: int) -> Lock | None:
    return release(lock, lock.holder.owner, now) if lock else None
