"""A deadline with a defect does not block others; after repeated defects it becomes a dead letter."""

from datetime import UTC, datetime

from edge.foundation.backoff import MOST_TRIES
from edge.foundation.task_group import background_task
from edge.model.job_state import Cause, JobState
from edge.store import dead_letters, version
from edge.store.dead_letters import LetterKind
from tests.station.plant import (
    KEEP_ENDED_MS,
    NOW,
    SCOPE,
    Clock,
    FakeEquipment,
    Plant,
    obliging,
    order,
    until,
)


async def test_unreadable_job_does_not_block_the_start_of_others(
    plant: Plant, tool: FakeEquipment, clock: Clock
) -> None:
    tool.replies = obliging
    at = datetime.fromtimestamp(NOW / 1000 + 60, UTC)
    for job_id in ("J1", "J2"):
        await plant.order(Cause.STORE_AND_START, order(job_id, start_time=at))
    await plant.store.execute("HSET", plant.store.keys.joborder("J1"), "order", "{")
    clock.now += 60_000
    async with plant.at_work(), background_task(plant.timers.run(), "timers"):
        await plant.until_state("J2", JobState.ENDED)


async def served_in_vain(plant: Plant, clock: Clock, job_id: str) -> None:
    """Advance the time until a deadline that meets a defect was tried as often as allowed."""
    for _ in range(MOST_TRIES):
        before = await plant.timer(job_id)
        clock.now = max(clock.now, before or 0)
        plant.timers.expect(0)
        await until(lambda: timer_differs(plant, job_id, before))  # noqa: B023


async def timer_differs(plant: Plant, job_id: str, before: int | None) -> bool:
    return await plant.timer(job_id) != before


async def test_deadline_with_a_repeated_defect_fails_its_job(running: Plant, clock: Clock) -> None:
    await running.store.execute("HSET", running.store.keys.sfc_execution("J1"), "recipe", '{"steps": []}')
    running.runs.invalidate("J1")
    clock.now += 5000
    async with background_task(running.timers.run(), "timers"):
        await served_in_vain(running, clock, "J1")
        job = await running.until_state("J1", JobState.ABORTED)
    (letter,) = (await dead_letters.load_all(running.store)).values()
    assert (letter.kind, letter.scope, letter.job_id) == (LetterKind.DEADLINE, SCOPE, "J1")
    assert str(letter.reason) == str(job.error)
    assert await running.timer("J1") == clock.now + KEEP_ENDED_MS


async def test_deadline_of_an_unreadable_job_is_dead_lettered(running: Plant, clock: Clock) -> None:
    await running.store.execute("HSET", running.store.keys.joborder("J1"), "order", "{")
    running.runs.invalidate("J1")
    clock.now += 5000
    async with background_task(running.timers.run(), "timers"):
        await served_in_vain(running, clock, "J1")
        await until(lambda: has_no_timer(running, "J1"))
    (letter,) = (await dead_letters.load_all(running.store)).values()
    assert (letter.kind, letter.job_id) == (LetterKind.DEADLINE, "J1")


async def has_no_timer(plant: Plant, job_id: str) -> bool:
    return await plant.timer(job_id) is None


async def test_deadline_of_a_job_of_a_newer_release_does_not_block_others(running: Plant, clock: Clock) -> None:
    await running.order(Cause.STORE_AND_START, order("J2", "supervised"))
    await running.until_state("J2", JobState.RUNNING)
    await running.store.execute("HSET", running.store.keys.sfc_execution("J1"), version.FIELD, 99)
    running.runs.invalidate("J1")
    clock.now += 5000
    async with background_task(running.timers.run(), "timers"):
        await running.until_state("J2", JobState.ABORTED)
        await served_in_vain(running, clock, "J1")
    assert (await running.job("J1")).status.state is JobState.RUNNING
    assert await dead_letters.load_all(running.store) == {}
