"""The response of a job says what became of it and of each of its actions."""

import msgspec

from edge.model.isa95 import JobResponse
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.station.response import job_response
from edge.store import jobs
from edge.store.jobs import Job
from tests.station.plant import NOW, SCOPE, FakeEquipment, Plant, order, until_true


def job(status: JobStatus, **fields: object) -> Job:
    return msgspec.structs.replace(
        Job(order=order("J1"), scope=SCOPE, status=status, correlation_id="c", stored_at=NOW), **fields
    )


def test_a_job_that_never_ran_has_a_response_without_data() -> None:
    response = job_response(job(JobStatus(JobState.ABORTED), ended_at=NOW), None)
    assert (response.job_order_id, response.job_response_id) == ("J1", "c")
    assert response.start_time is None
    assert response.end_time
    assert response.end_time.isoformat() == "2023-11-14T22:13:20+00:00"
    assert response.job_response_data is None
    assert response.description is None


def test_the_reason_of_a_failure_is_description_and_data() -> None:
    response = job_response(job(JobStatus(JobState.ABORTED), error="it broke"), None)
    assert response.description
    assert response.description.text == "it broke"
    assert [(each.id, each.value) for each in response.job_response_data or ()] == [("Error", "it broke")]


def test_state_and_sub_state_stand_in_the_response() -> None:
    response = job_response(job(JobStatus(JobState.ENDED, SubState.COMPLETED)), None)
    assert [(each.state_text.text, each.state_number) for each in response.job_state] == [
        ("Ended", 5),
        ("Completed", 1),
    ]


async def test_results_of_any_shape_become_data_and_are_read_back(plant: Plant, tool: FakeEquipment) -> None:
    results = {"torque": 12.5, "steps": [1, {"a": 2}], "axis": {"x": 1, "y": {}}, "text": 'say "hi"', "none": None}
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: len(tool.commands) == 1)
        await plant.answer(tool.commands[0], results)
        await until_true(lambda: len(tool.commands) == 2)
        await plant.answer(tool.commands[1], [])
        ended = await plant.until_state("J1", JobState.ENDED)
    response = await jobs.load_response(plant.store, ended)
    assert isinstance(response, JobResponse)
    a, b = response.job_response_data or ()
    assert (b.id, b.value, b.subparameters) == ("b", [], None)
    assert a.id == "a"
    data = {each.id: each for each in a.subparameters or ()}
    assert data["torque"].value == 12.5
    assert data["steps"].value == [1, {"a": 2}]
    assert [each.id for each in data["axis"].subparameters or ()] == ["x", "y"]
    assert data["text"].value == 'say "hi"'
