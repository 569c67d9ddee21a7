"""Results of jobs are found by action, member and the end of their job."""

from typing import Any

import msgspec

from edge.features.flows.nodes.outside import JobResults
from edge.features.flows.ports.jobs import ResultReader
from edge.model.isa95 import JobOrder, JobResponse, Parameter
from edge.model.job_state import JobState, JobStatus, SubState
from edge.sfc.compiler import compile_recipe
from edge.sfc.net import Net
from edge.sfc.run import new_run
from edge.station.response import job_response
from edge.store import responses, runs
from edge.store.client import Store
from edge.store.commit import Committed
from edge.store.jobs import Job
from edge.store.runs import StoredRun

HOUR = 3_600_000


async def end(store: Store, job_id: str, ended_at: int, *data: Parameter, scope: str = "s") -> None:
    """Store the response of a job that has ended."""
    job = Job(
        order=JobOrder(job_order_id=job_id),
        scope=scope,
        status=JobStatus(JobState.ENDED, SubState.COMPLETED),
        correlation_id=f"c-{job_id}",
        stored_at=0,
        started_at=ended_at - 500,
        ended_at=ended_at,
    )
    response: JobResponse = msgspec.structs.replace(job_response(job, None), job_response_data=data)
    await store.commit(responses.save(store.keys, job, response))


def tightening(torque: float, action: str = "tighten") -> Parameter:
    return Parameter(id=action, subparameters=(Parameter(id="torque", value=torque), Parameter(id="ok", value=True)))


async def read(
    store: Store, member: str, action: str | None = None, after: int = 0, process: str | None = None
) -> list[Any]:
    return await ResultReader(store, ["s", "t"]).read(JobResults(member, action, process, after, 9 * HOUR), "")


async def run(store: Store, job_id: str, processes: dict[str, str], **parameters: str) -> None:
    """Store the run of a job; each action names a joining process."""
    net = compile_recipe(
        {
            "steps": [{"name": "s", "initial": True}],
            "transitions": [],
            "actions": [
                {
                    "name": action,
                    "step": "s",
                    "qualifier": "N",
                    "interaction": "push_command",
                    "type_id": "t.v1",
                    "parameters": {"joining_process_id": process},
                }
                for action, process in processes.items()
            ],
        }
    )
    assert isinstance(net, Net), net
    stored_run = StoredRun(new_run(job_id, "s", "r", parameters), 1, net.source)
    assert isinstance(await store.commit(runs.create(store.keys, stored_run, store.consumer)), Committed)


async def test_results_of_one_joining_process_are_found(store: Store) -> None:
    await end(store, "J1", HOUR, tightening(11.0), tightening(40.5, "press"))
    await run(store, "J1", {"tighten": "JP-1", "press": "JP-2"})
    await end(store, "J2", 2 * HOUR, tightening(12.0))
    await run(store, "J2", {"tighten": "JP-1"}, joining_process_id="JP-2")
    await end(store, "without run", 3 * HOUR, tightening(13.0))
    assert await read(store, "torque", process="JP-1") == [11.0]
    assert await read(store, "torque", process="JP-2") == [40.5, 12.0]
    assert await read(store, "torque", "press", process="JP-2") == [40.5]
    assert await read(store, "torque", process="JP-3") == []


async def test_results_are_ordered_by_the_end_of_their_job(store: Store) -> None:
    await end(store, "J2", 2 * HOUR, tightening(12.0))
    await end(store, "J1", HOUR, tightening(11.0), tightening(40.5, "press"))
    await end(store, "J3", 3 * HOUR, tightening(13.0), scope="t")
    await end(store, "other", HOUR, tightening(99.0), scope="u")
    assert await read(store, "torque", "tighten") == [11.0, 12.0, 13.0]
    assert await read(store, "torque") == [11.0, 40.5, 12.0, 13.0]
    assert await read(store, "torque", "tighten", after=2 * HOUR) == [13.0]
    assert await read(store, "angle") == []


async def test_plain_and_nested_values_are_found(store: Store) -> None:
    nested = Parameter(id="a", subparameters=(Parameter(id="x", subparameters=(Parameter(id="y", value=7),)),))
    await end(store, "J1", HOUR, Parameter(id="weigh", value=85.2), nested, Parameter(id="Error", value="no"))
    assert await read(store, "value") == [85.2]
    assert await read(store, "x.y") == [7]
    assert await read(store, "x") == []


async def test_more_results_than_a_page_are_found(store: Store) -> None:
    for number in range(250):
        await end(store, f"J{number}", HOUR + number, tightening(float(number)))
    assert await read(store, "torque") == [float(number) for number in range(250)]
