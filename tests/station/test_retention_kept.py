"""The number of ended jobs that are kept is bounded: the oldest go first, those without delivery never."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable

import pytest
from msgspec.structs import replace

from edge.foundation.task_group import background_task
from edge.model.isa95 import JobOrder
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.station.response import job_response
from edge.station.retention import Confirmation, Deliveries, Expiry, KeptJobs, RetentionPolicy
from edge.station.runs import Runs
from edge.store import changes, dedupe, ended_jobs, jobs, responses, runs
from edge.store.client import Store
from edge.store.commit import Committed, join, operation
from edge.store.jobs import Job

SCOPE = "station-1"
ENDED_AT = 1_700_000_000_000
NOW = ENDED_AT + 10_000
KEEP_MS = 50_000
POLICY = RetentionPolicy(KEEP_MS, "delivery", dedupe_ms=60_000, most_kept=3)


async def end(store: Store, number: int, *, delivered: bool = True, scope: str = SCOPE, job_id: str = "") -> Job:
    """Store a job that ended `number` milliseconds after the first."""
    at = ENDED_AT + number
    status = JobStatus(JobState.ENDED, SubState.COMPLETED)
    job = Job(
        order=JobOrder(job_order_id=job_id or f"{scope}/{number}"),
        scope=scope,
        status=status,
        correlation_id=f"{scope}/{number}-response",
        stored_at=at,
        started_at=at,
        ended_at=at,
    )
    parts = [
        jobs.save(store.keys, None, job, ((Cause.COMPLETE, status),), at),
        responses.save(store.keys, job, job_response(job, None)),
        runs.set_timer(store.keys, job.job_id, at + KEEP_MS),
    ]
    assert isinstance(await store.commit(join(parts)), Committed)
    if delivered:
        assert isinstance(await store.commit(jobs.record_delivery(store.keys, job, at)), Committed)
    return job


async def kept(store: Store, scope: str = SCOPE) -> list[int]:
    return sorted(int(identifier.removeprefix(f"{scope}/")) for identifier in await jobs.list_ids(store, scope))


def bounded(
    store: Store, policy: RetentionPolicy = POLICY, scopes: Iterable[str] = (SCOPE,), **limits: int
) -> KeptJobs:
    service = Runs(store, lambda: NOW, KEEP_MS)
    return KeptJobs(store, tuple(scopes), service, Expiry(store, policy), lambda: NOW, **limits)


async def test_the_oldest_ended_jobs_beyond_the_number_go_before_their_time(store: Store) -> None:
    for number in (5, 1, 4, 2, 3):
        await end(store, number)
    await bounded(store).sweep()
    assert await kept(store) == [3, 4, 5]
    assert await store.fetch(dedupe.query_removal(store.keys, f"{SCOPE}/1")) == NOW
    position = (await changes.latest(store, [SCOPE]))[SCOPE]
    causes = [change.cause async for change in changes.read_between(store, SCOPE, "0-0", position)]
    assert causes[-2:] == [Cause.EXPIRE, Cause.EXPIRE]


async def test_a_result_without_delivery_is_never_removed_for_its_number(store: Store) -> None:
    for number in range(1, 7):
        await end(store, number, delivered=number in {3, 6})
    service = bounded(store)
    await service.sweep()
    assert await kept(store) == [1, 2, 4, 5]
    for number in (7, 8):
        await end(store, number)
    await service.sweep()
    assert await kept(store) == [1, 2, 4, 5]


@pytest.mark.parametrize(("confirmation", "expected"), [("clear", [1, 2, 3, 4]), ("none", [2, 3, 4])])
async def test_confirmation_decides_what_may_go(store: Store, confirmation: Confirmation, expected: list[int]) -> None:
    for number in range(1, 5):
        await end(store, number, delivered=False)
    await bounded(store, replace(POLICY, confirmation=confirmation)).sweep()
    assert await kept(store) == expected


async def test_a_late_delivery_is_found_when_no_job_has_ended_since(store: Store) -> None:
    first = await end(store, 1, delivered=False)
    for number in (2, 3, 4):
        await end(store, number, delivered=False)
    service = bounded(store)
    await service.sweep()
    await store.commit(jobs.record_delivery(store.keys, first, NOW))
    await service.sweep()
    assert await kept(store) == [2, 3, 4]


async def test_no_job_is_read_below_the_number(store: Store) -> None:
    async def reads() -> object:
        return (await store.execute("INFO", "commandstats")).get("cmdstat_hmget")

    for number in (1, 2, 3):
        await end(store, number)
    before = await reads()
    await bounded(store).sweep()
    assert await reads() == before
    await end(store, 4)
    await bounded(store).sweep()
    assert await reads() != before


async def test_each_scope_keeps_its_own_number(store: Store) -> None:
    for number in range(1, 6):
        await end(store, number)
        await end(store, number, scope="station-2")
        await end(store, number, scope="of-another-gateway")
    await bounded(store, scopes=(SCOPE, "station-2")).sweep()
    assert await kept(store) == [3, 4, 5]
    assert await kept(store, "station-2") == [3, 4, 5]
    assert await kept(store, "of-another-gateway") == [1, 2, 3, 4, 5]


async def test_a_job_with_commands_to_send_stays(store: Store) -> None:
    for number in range(1, 5):
        await end(store, number)
    await store.commit(operation("SADD", store.keys.sfc_active_jobs(), f"{SCOPE}/1"))
    await bounded(store).sweep()
    assert await kept(store) == [1, 3, 4]


async def test_an_unreadable_job_does_not_keep_the_others(store: Store) -> None:
    for number in range(1, 6):
        await end(store, number)
    await store.execute("HSET", store.keys.joborder(f"{SCOPE}/1"), "order", "{")
    await bounded(store).sweep()
    assert await kept(store) == [1, 4, 5]


class _Removing(Expiry):
    """Calls a function before each removal: what others do while the jobs of a page are removed one after the other."""

    def __init__(self, store: Store, policy: RetentionPolicy, before: Callable[[Job], Awaitable[None]]) -> None:
        super().__init__(store, policy)
        self._before = before

    async def remove(self, job: Job, now: int) -> None:
        await self._before(job)
        await super().remove(job, now)


@pytest.mark.parametrize("ends_again", [False, True], ids=["waits", "ended-undelivered"])
async def test_a_job_stored_again_with_the_id_of_one_to_remove_stays(store: Store, ends_again: bool) -> None:  # noqa: FBT001
    second = [await end(store, number) for number in range(1, 7)][1]

    async def store_second_again(job: Job) -> None:
        if not job.job_id.endswith("/1"):
            return
        assert isinstance(await store.commit(jobs.remove(store.keys, second, Cause.CLEAR, NOW)), Committed)
        if ends_again:
            await end(store, 2, delivered=False)
            return
        waits = JobStatus(JobState.ALLOWED_TO_START, SubState.READY)
        again = replace(second, status=waits, stored_at=NOW, started_at=None, ended_at=None, delivered_at=None)
        commit = jobs.save(store.keys, None, again, ((Cause.STORE_AND_START, waits),), NOW)
        assert isinstance(await store.commit(commit), Committed)

    service = KeptJobs(
        store,
        (SCOPE,),
        Runs(store, lambda: NOW, KEEP_MS),
        _Removing(store, POLICY, store_second_again),
        lambda: NOW,
    )
    await service.sweep()
    assert 2 in await kept(store)


async def test_gateway_that_stood_still_keeps_a_later_job_of_the_same_id(store: Store) -> None:
    """It froze after it had read a job; the MES cleared that one, and a new one ended and was delivered meanwhile."""
    first, *_ = [await end(store, number) for number in range(1, 5)]

    async def end_again(job: Job) -> None:
        if job == first_delivered:
            assert isinstance(await store.commit(jobs.remove(store.keys, job, Cause.CLEAR, NOW)), Committed)
            await end(store, 9, job_id=job.job_id)

    first_delivered = await jobs.load(store, first.job_id)
    service = KeptJobs(
        store, (SCOPE,), Runs(store, lambda: NOW, KEEP_MS), _Removing(store, POLICY, end_again), lambda: NOW
    )
    await service.sweep()
    assert await kept(store) == [1, 3, 4]


async def test_two_gateways_together_remove_what_one_would(store: Store) -> None:
    for number in range(1, 30):
        await end(store, number)
    await asyncio.gather(bounded(store).sweep(), bounded(store).sweep())
    assert await kept(store) == [27, 28, 29]


async def test_many_go_in_several_sweeps(store: Store) -> None:
    for number in range(1, 9):
        await end(store, number)
    service = bounded(store, most_at_once=2, page_size=1)
    await service.sweep()
    assert await kept(store) == [3, 4, 5, 6, 7, 8]
    await service.sweep()
    await service.sweep()
    assert await kept(store) == [6, 7, 8]


async def test_the_bound_holds_from_the_start(store: Store) -> None:
    for number in range(1, 6):
        await end(store, number)
    positions = await changes.latest(store, [SCOPE])
    async with asyncio.timeout(60), background_task(bounded(store).run(), "kept jobs"):
        removed = 0
        async for batch in changes.follow_in_batches(store, positions):
            removed += sum(change.cause is Cause.EXPIRE for change in batch)
            if removed == 2:
                break
    assert await kept(store) == [3, 4, 5]


async def test_delivered_results_are_dropped_after_confirmed_ones(store: Store) -> None:
    """An undelivered one never does."""
    policy = replace(POLICY, confirmation="mes")
    deliveries = Deliveries(store, lambda: NOW, policy)
    await end(store, 1, delivered=False)
    for number in range(2, 7):
        await end(store, number)
    for number in (4, 6):
        await deliveries.acknowledge(SCOPE, [f"{SCOPE}/{number}"])
    await bounded(store, policy).sweep()
    assert await kept(store) == [1, 3, 5]
    await end(store, 7)
    await bounded(store, policy).sweep()
    assert await kept(store) == [1, 5, 7]


async def test_result_kept_beyond_its_time_drops_delivered_to_newer_ones(store: Store) -> None:
    policy = replace(POLICY, confirmation="mes")
    first = await end(store, 1)
    job = await jobs.load(store, first.job_id)
    assert job
    await Expiry(store, policy).expire(job, NOW)
    for number in range(2, 5):
        await end(store, number)
    await bounded(store, policy).sweep()
    assert await kept(store) == [2, 3, 4]
    assert await ended_jobs.oldest_unconfirmed(store, SCOPE, 9) == []
