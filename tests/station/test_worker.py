"""Work is done by whoever has it, in the order of each job, and acknowledged last."""

from edge.model.job_state import Cause, JobState, SubState
from edge.store import jobs, runs
from edge.store.keys import GROUP
from tests.station.plant import (
    KEEP_ENDED_MS,
    NOW,
    SCOPE,
    FakeEquipment,
    Plant,
    obliging,
    order,
)


async def test_a_job_runs_to_its_end_and_all_that_is_written_of_it_agrees(plant: Plant, tool: FakeEquipment) -> None:
    tool.replies = obliging
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        job = await plant.until_state("J1", JobState.ENDED, SubState.COMPLETED)
    store, keys = plant.store, plant.store.keys
    assert tool.told() == ["a", "b"]
    assert (job.started_at, job.ended_at, job.error) == (NOW, NOW, None)
    response = await jobs.load_response(store, job)
    assert response
    assert response.job_response_id == job.correlation_id
    assert [state.state_number for state in response.job_state] == [5, 1]
    assert [each.id for each in response.job_response_data or ()] == ["a", "b"]
    run = await runs.load(store, "J1")
    assert run
    assert run.run.ended
    assert await store.execute("ZRANGE", keys.joborder_list(SCOPE), 0, -1) == ["J1"]
    assert await store.execute("ZRANGE", keys.joborder_open(SCOPE), 0, -1) == []
    assert await store.execute("ZRANGE", keys.jobresponse_list(SCOPE), 0, -1) == [job.correlation_id]
    assert await store.execute("SCARD", keys.sfc_active_jobs()) == 0
    assert float(await store.execute("ZSCORE", keys.sfc_timers(), "J1")) == NOW + KEEP_ENDED_MS
    assert await store.execute("XLEN", keys.sfc_work(SCOPE)) == 0
    assert (await store.execute("XPENDING", keys.sfc_work(SCOPE), GROUP))["pending"] == 0
