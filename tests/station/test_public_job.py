"""The public form of a job says what it waits for, in each phase of its life."""

from edge.model.job_state import Cause
from edge.station.public_job import public_detail
from edge.station.stored_job import load
from tests.station.plant import LINEAR, FakeEquipment, Plant, order


async def test_job_before_its_start_waits_for_a_call(plant: Plant) -> None:
    await plant.order(Cause.STORE, order("J1"))
    detail = public_detail(await load(plant.store, "J1"), 0)
    assert (detail.job.state, detail.waits.halted, detail.has_chart) == ("NotAllowedToStart", "not started", False)
    assert "Start" in detail.takes


async def test_failure_waits_for_a_person_with_what_helps(plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach("attended", LINEAR | {"interventions": ["retry", "skip"]})
    await plant.order(Cause.STORE_AND_START, order("J1", "attended"))
    await plant.drive()
    await plant.answer(tool.commands[0], error="torque low")
    detail = public_detail(await load(plant.store, "J1"), plant.runs.clock())
    (failure,) = detail.waits.failures
    assert (failure.action, failure.state, failure.allowed) == ("a", "failed", ("retry", "skip"))
    assert [(action.action, action.error) for action in detail.actions] == [("a", "failed: torque low")]
    assert {(intervention.kind, intervention.role) for intervention in detail.interventions} == {
        ("retry", "operator"),
        ("skip", "operator"),
    }
