"""A flow starts jobs like the MES; the same node task starts one job."""

import pytest

from edge.features.flows.nodes.kind import NodeError
from edge.features.flows.nodes.outside import StartJob
from edge.features.flows.ports.jobs import JobStarter
from edge.store import jobs
from edge.store.client import Store
from tests.station.plant import LINEAR, PHOTO, SCOPE, TIGHTEN, Clock, FakeEquipment, Plant


async def test_node_task_starts_one_job(store: Store) -> None:
    tool = FakeEquipment()
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())
    await plant.teach("linear", LINEAR)
    starter = JobStarter(plant.jobs, [SCOPE], "urn:test")
    for _ in range(2):
        output = await starter.start(StartJob(SCOPE, "linear", {"torque": 12}), "report_0_start@7")
        assert output == {"job": "report_0_start", "work_master": "linear"}
    job = await jobs.load(store, "report_0_start")
    assert job
    assert job.order.job_order_parameters
    assert (job.order.job_order_parameters[0].id, job.order.job_order_parameters[0].value) == ("torque", 12)


async def test_flow_put_again_after_deletion_does_not_reuse_the_old_job(store: Store) -> None:
    """The node of the new flow had the answer of the old one, and no job was started."""
    tool = FakeEquipment()
    plant = Plant(store, {TIGHTEN: tool, PHOTO: tool}, Clock())
    await plant.teach("linear", LINEAR)
    starter = JobStarter(plant.jobs, [SCOPE], "urn:test")
    await starter.start(StartJob(SCOPE, "linear", None), "report_0_start@7")
    with pytest.raises(NodeError):
        await starter.start(StartJob(SCOPE, "linear", None), "report_0_start@8")


@pytest.mark.parametrize(
    ("scope", "work_master", "task_id", "reason"),
    [
        ("other", "linear", "t", "does not serve scope 'other'"),
        (SCOPE, "unknown", "t", "unknown"),
        (SCOPE, "linear", "a\nb", "cannot be printed"),
    ],
)
async def test_job_that_is_refused_fails_the_node(
    store: Store, scope: str, work_master: str, task_id: str, reason: str
) -> None:
    plant = Plant(store, {}, Clock())
    with pytest.raises(NodeError, match=reason):
        await JobStarter(plant.jobs, [SCOPE], "urn:test").start(StartJob(scope, work_master, None), f"{task_id}@9")
