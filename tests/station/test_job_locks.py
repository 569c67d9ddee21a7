"""The commit that acquires and releases the locks of a job."""

from edge.access.locks import find_locks
from edge.model.lock import LockKind
from edge.sfc.run_locks import LockChange
from edge.station.job_locks import lock_holders, plan_locks
from edge.store.client import Store
from edge.store.commit import Committed, Stale
from tests.station.plant import SCOPE, Plant


async def change(store: Store, job_id: str, locks: LockChange) -> bool:
    plan = await plan_locks(store, job_id, SCOPE, locks)
    return plan is not None and isinstance(await store.commit(plan), Committed)


async def queues(store: Store) -> dict[str, list[str]]:
    return {
        lock.object_id: [lock.lock.holder.job_id, *(waiter.job_id for waiter in lock.lock.waiters)]
        for lock in await find_locks(store, (LockKind.EQUIPMENT,), ())
        if lock.lock
    }


async def test_job_waits_for_one_lock_at_a_time_in_lock_order(plant: Plant) -> None:
    store = plant.store
    assert await change(store, "J1", LockChange(claimed=("b",)))
    assert await change(store, "J2", LockChange(claimed=("a", "b", "c")))
    assert await queues(store) == {"a": ["J2"], "b": ["J1", "J2"]}
    assert (await lock_holders(store, ("a", "b", "c"))).keys() == {"a", "b"}


async def test_lock_released_and_claimed_again_is_queued_last(plant: Plant) -> None:
    store = plant.store
    for job in ("J1", "J2"):
        assert await change(store, job, LockChange(claimed=("a",)))
    assert await change(store, "J1", LockChange(released=frozenset("a"), claimed=("a",)))
    assert await queues(store) == {"a": ["J2", "J1"]}


async def test_grant_of_a_deleted_lock_is_not_confirmed(plant: Plant) -> None:
    store = plant.store
    assert await change(store, "J1", LockChange(claimed=("a",)))
    await store.execute("DEL", store.keys.locks("equipment"))
    assert await change(store, "J2", LockChange(claimed=("a",)))
    assert not await change(store, "J1", LockChange(granted=("a",)))


async def test_lock_plan_is_stale_after_a_concurrent_change(plant: Plant) -> None:
    store = plant.store
    plan = await plan_locks(store, "J1", SCOPE, LockChange(claimed=("a",)))
    assert plan is not None
    assert await change(store, "J2", LockChange(claimed=("a",)))
    assert await store.commit(plan) == Stale(store.keys.locks("equipment"))


async def test_empty_lock_change_has_no_guards(plant: Plant) -> None:
    plan = await plan_locks(plant.store, "J1", SCOPE, LockChange())
    assert plan is not None
    assert not plan.guards
