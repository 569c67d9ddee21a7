"""The response of a job contains its outcome and the results of its actions."""

from typing import Any

import msgspec
import pytest

from edge.model.engineering_unit import engineering_unit
from edge.model.isa95 import JobResponse, LocalizedText
from edge.model.job_state import Cause, JobState, JobStatus, SubState
from edge.station.response import job_response
from edge.store import responses
from edge.store.jobs import Job
from tests.station.plant import NOW, SCOPE, FakeEquipment, Plant, action, linear, order, results_of, until_true


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


def test_failure_reason_is_in_description_and_data() -> None:
    response = job_response(job(JobStatus(JobState.ABORTED), error="it broke"), None)
    assert response.description
    assert response.description.text == "it broke"
    assert [(parameter.id, parameter.value) for parameter in results_of(response)] == [("Error", "it broke")]


def test_response_contains_state_and_sub_state() -> None:
    response = job_response(job(JobStatus(JobState.ENDED, SubState.COMPLETED)), None)
    assert [(state.state_text.text, state.state_number) for state in response.job_state] == [
        ("Ended", 5),
        ("Completed", 1),
    ]


async def test_results_of_any_shape_are_stored_as_data_and_read_back(plant: Plant, tool: FakeEquipment) -> None:
    results = {"torque": 12.5, "steps": [1, {"a": 2}], "axis": {"x": 1, "y": {}}, "text": 'say "hi"', "none": None}
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1"))
        await until_true(lambda: len(tool.commands) == 1)
        await plant.answer(tool.commands[0], results)
        await until_true(lambda: len(tool.commands) == 2)
        await plant.answer(tool.commands[1], [])
        ended = await plant.until_state("J1", JobState.ENDED)
    response = await responses.load(plant.store, ended)
    assert isinstance(response, JobResponse)
    a, b = results_of(response)
    assert (b.id, b.value, b.subparameters) == ("b", [], None)
    assert a.id == "a"
    data = {subparameter.id: subparameter for subparameter in a.subparameters or ()}
    assert data["torque"].value == 12.5
    assert data["steps"].value == [1, {"a": 2}]
    assert [subparameter.id for subparameter in data["axis"].subparameters or ()] == ["x", "y"]
    assert data["text"].value == 'say "hi"'


async def response_to(plant: Plant, tool: FakeEquipment, result: object, **fields: Any) -> JobResponse:
    """Return the response of a job of one action that was answered with a result."""
    await plant.teach("measuring", linear(action("a", "one", **fields)))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "measuring"))
        await until_true(lambda: len(tool.commands) == 1)
        await plant.answer(tool.commands[0], result)
        response = await responses.load(plant.store, await plant.until_state("J1", JobState.ENDED))
    assert response
    return response


async def test_a_value_with_a_unit_becomes_a_value_with_an_engineering_unit(plant: Plant, tool: FakeEquipment) -> None:
    result = {
        "torque": {"value": 85.2, "unit": "Nm"},
        "angle": {"value": 41, "unit": "deg", "description": "final angle"},
        "odd": {"value": 1, "unit": 2},
        "more": {"value": 1, "unit": "Nm", "limit": 2},
    }
    (a,) = results_of(await response_to(plant, tool, result))
    torque, angle, odd, more = a.subparameters or ()
    assert (torque.value, torque.engineering_units) == (85.2, engineering_unit("Nm"))
    assert (angle.value, angle.engineering_units) == (41, engineering_unit("deg"))
    assert angle.description == (LocalizedText(text="final angle"),)
    assert [subparameter.id for subparameter in odd.subparameters or ()] == ["value", "unit"]
    assert [subparameter.id for subparameter in more.subparameters or ()] == ["value", "unit", "limit"]


async def test_a_result_that_is_one_value_with_a_unit_is_the_value_of_the_action(
    plant: Plant, tool: FakeEquipment
) -> None:
    (a,) = results_of(await response_to(plant, tool, {"value": True, "unit": "1"}))
    assert (a.id, a.value, a.engineering_units) == ("a", True, engineering_unit("1"))


async def test_actuals_are_read_from_results_and_from_the_recipe(plant: Plant, tool: FakeEquipment) -> None:
    result = {
        "ok": True,
        "equipment_actuals": [{"ID": "wrench-3", "EquipmentUse": "tightening"}, {"ID": "socket-13"}],
        "MaterialActuals": {"MaterialLotID": "L-77", "Quantity": "2", "EngineeringUnits": {"UnitId": 4732727}},
        "personnel_actuals": "worker-5",
        "physical_asset_actuals": ["asset-1", "asset-1"],
    }
    parameters = {"equipment_actuals": [{"ID": "fixture-1"}, {"ID": "socket-13"}], "material_actuals": ["L-78"]}
    response = await response_to(plant, tool, result, parameters=parameters)
    assert [actual.id for actual in response.equipment_actuals or ()] == ["fixture-1", "socket-13", "wrench-3"]
    assert [(actual.material_lot_id, actual.quantity) for actual in response.material_actuals or ()] == [
        ("L-78", None),
        ("L-77", "2"),
    ]
    assert [actual.id for actual in response.personnel_actuals or ()] == ["worker-5"]
    assert [actual.id for actual in response.physical_asset_actuals or ()] == ["asset-1"]
    (a,) = results_of(response)
    assert [subparameter.id for subparameter in a.subparameters or ()] == ["ok"]


@pytest.mark.parametrize("named", [5, None, [5], {}, [{}], {"Quantity": "3"}, [{"MaterialLotID": "L"}, {}], []])
async def test_invalid_actuals_stay_result_data(plant: Plant, tool: FakeEquipment, named: object) -> None:
    response = await response_to(plant, tool, {"material_actuals": named})
    assert response.material_actuals is None
    (a,) = results_of(response)
    assert [subparameter.id for subparameter in a.subparameters or ()] == ["material_actuals"]


async def test_failed_action_has_no_actuals(plant: Plant, tool: FakeEquipment) -> None:
    await plant.teach("measuring", linear(action("a", "one", parameters={"equipment_actuals": ["fixture-1"]})))
    async with plant.at_work():
        await plant.order(Cause.STORE_AND_START, order("J1", "measuring"))
        await until_true(lambda: len(tool.commands) == 1)
        await plant.answer(tool.commands[0], error="broken")
        job = await plant.until_state("J1", JobState.ABORTED)
    response = await responses.load(plant.store, job)
    assert response
    assert response.equipment_actuals is None
    assert [parameter.id for parameter in results_of(response)] == ["Error"]


async def test_a_response_with_units_and_actuals_is_read_back_as_it_was_written(
    plant: Plant, tool: FakeEquipment
) -> None:
    result = {
        "torque": {"value": 85.2, "unit": "Nm"},
        "material_actuals": {"MaterialLotID": "L", "Properties": [{"ID": "charge", "Value": [1, 2]}]},
    }
    response = await response_to(plant, tool, result)
    assert msgspec.json.decode(msgspec.json.encode(response), type=JobResponse) == response
