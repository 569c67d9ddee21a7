"""Conversion of results of OPC 40450-1, also of results that the simulator never sends."""

import time
from typing import Any

import pytest
from msgspec.structs import replace

from edge.features.joining.conversion import (
    answer_data,
    classifications_of,
    command_id_of,
    entities,
    process,
    raw_command_id,
    result_data,
    trace_data,
    validate_command,
)
from edge.foundation.errors import Refused
from edge.ports.result_trace import read_trace
from tests.equipment.contract import WORK

NM = {"DisplayName": "N·m"}


def result(*content: Any, **meta: Any) -> dict[str, Any]:
    return {"ResultMetaData": {"ResultId": "R1", **meta}, "ResultContent": list(content)}


def of(command_id: str, classification: int = 1) -> dict[str, Any]:
    entity = {"Name": "CommandID", "EntityId": command_id, "EntityType": 31}
    return result(AssociatedEntities=[entity], Classification=classification)


def test_minimal_result_is_converted_with_defaults() -> None:
    assert answer_data(result()) == {
        "evaluation": "Undefined",
        "result_id": "R1",
        "sequence_number": None,
        "is_simulated": False,
        "created_at": None,
    }


def test_final_torque_is_reported_as_the_torque() -> None:
    values = [
        {"MeasuredValue": 90.0, "Name": "Peak", "PhysicalQuantity": 2, "EngineeringUnits": NM},
        {"MeasuredValue": 85.0, "PhysicalQuantity": 2, "ValueTag": 1, "EngineeringUnits": NM},
        {"MeasuredValue": 0.4, "Name": "Time", "PhysicalQuantity": 1},
    ]
    answer = answer_data(result({"OverallResultValues": values}, ResultEvaluation=1))
    assert answer["torque"] == {"value": 85.0, "unit": "N·m"}
    assert answer["values"] == {
        "Peak": {"value": 90.0, "unit": "N·m"},
        "torque": {"value": 85.0, "unit": "N·m"},
        "Time": {"value": 0.4},
    }
    assert "angle" not in answer


def test_steps_with_the_same_name_are_numbered() -> None:
    steps = [{"StepResultId": str(n), "Name": "Loosen"} for n in range(3)]
    answer = answer_data(result({"OverallResultValues": [], "StepResults": steps}))
    assert list(answer["steps"]) == ["Loosen", "Loosen #2", "Loosen #3"]


def test_numbered_step_name_in_use_is_skipped() -> None:
    steps = [{"StepResultId": str(n), "Name": name} for n, name in enumerate(("Loosen", "Loosen #2", "Loosen"))]
    answer = answer_data(result({"OverallResultValues": [], "StepResults": steps}))
    assert list(answer["steps"]) == ["Loosen", "Loosen #2", "Loosen #3"]


def test_result_with_very_many_steps_is_converted_in_linear_time() -> None:
    steps = [{"StepResultId": str(n), "Name": "Loosen"} for n in range(20_000)]
    began = time.thread_time()
    assert len(answer_data(result({"OverallResultValues": [], "StepResults": steps}))["steps"]) == len(steps)
    # Linear: 0.05 s. A search among the earlier names for each step takes far longer.
    assert time.thread_time() - began < 5


def test_violations_of_steps_and_errors_are_reported() -> None:
    violated = {"MeasuredValue": 12.0, "Name": "Angle", "PhysicalQuantity": 3, "ViolationType": 1, "HighLimit": 10.0}
    joining = {
        "OverallResultValues": [],
        "StepResults": [{"StepResultId": "S1", "ResultEvaluation": 2, "StepResultValues": [violated]}],
        "FailureReason": 3,
        "Errors": [{"ErrorType": 1, "ErrorId": "E7", "ErrorMessage": "tool trigger lost"}],
    }
    answer = answer_data(result(joining, ResultEvaluation=2))
    assert answer["violations"] == {
        "S1: Angle": {
            "measured": {"value": 12.0},
            "high": {"value": 10.0},
            "violation_type": 1,
            "violation": "High",
        }
    }
    assert (answer["failure_reason"], answer["errors"]) == ("error", {"E7": "tool trigger lost"})


def test_a_batch_holds_the_results_of_its_joinings() -> None:
    single = result({"OverallResultValues": []}, ResultEvaluation=1)
    answer = answer_data(result(single, single, ResultEvaluation=1, Classification=3))
    assert [value["evaluation"] for value in answer["results"].values()] == ["OK", "OK"]


@pytest.mark.parametrize(
    ("meta", "why"),
    [
        ({"ResultState": 4}, "Failed"),
        ({"Classification": 6}, "Aborted"),
        ({"ResultState": 3, "ResultEvaluationDetails": "trigger released"}, "trigger released"),
    ],
)
def test_incomplete_joining_is_refused_as_a_result(meta: dict[str, Any], why: str) -> None:
    with pytest.raises(Refused, match=f"the joining did not come to its end: {why}"):
        answer_data(result(**meta))


def test_result_answers_its_classification_and_an_intervention_all() -> None:
    assert classifications_of(of("J1")) == {"single"}
    assert classifications_of(of("J1", 3)) == {"batch"}
    assert classifications_of(of("J1", 6)) == {"single", "sync", "batch", "job", "stitching"}
    assert classifications_of(of("J1", 99)) == frozenset()


@pytest.mark.parametrize("raw", [None, {}, {"ResultMetaData": 7}, {"ResultMetaData": {"AssociatedEntities": "J1"}}])
def test_command_id_in_data_that_are_not_a_result_is_none(raw: object) -> None:
    assert raw_command_id(raw) is None
    assert raw_command_id({**of("J1"), "ResultContent": 7}) == "J1"


@pytest.mark.parametrize("parameters", [{"identifiers": "SN-7"}, {"classification": "all"}])
def test_invalid_parameters_are_refused(parameters: dict[str, Any]) -> None:
    with pytest.raises(Refused, match=f"the parameter {next(iter(parameters))} has to be"):
        validate_command(replace(WORK, parameters=parameters))


def test_result_of_an_operator_has_no_command_id() -> None:
    assert command_id_of(result()) is None
    assert command_id_of(of("J1/1")) == "J1/1"


def test_process_and_identifiers_are_read_from_the_command() -> None:
    command = replace(WORK, parameters={"selection_name": "P1", "part_id": "SN-7", "identifiers": {"Cell": 7}})
    assert process(command) == {"SelectionName": "P1"}
    assert [(entity["Name"], entity["EntityId"]) for entity in entities(command)] == [
        ("CommandID", WORK.command_id),
        ("JobOrderID", "J1"),
        ("PartID", "SN-7"),
        ("Cell", "7"),
    ]


CURVES: list[dict[str, Any]] = [
    {"Values": [0, 85.2], "PhysicalQuantity": 2, "EngineeringUnits": {"DisplayName": "N·m"}},
    {"Values": [0.0, 41.5], "Name": "Angle of the tool", "PhysicalQuantity": 3},
]
STEP = {"StepTraceId": "T2", "StepResultId": "S2", "NumberOfTracePoints": 2, "SamplingInterval": 0.5}
JOINING: dict[str, Any] = {
    "OverallResultValues": [],
    "StepResults": [{"StepResultId": "S2", "Name": "Final"}],
    "Trace": {"StepTraces": [STEP | {"StepTraceContent": CURVES}]},
}


def test_trace_has_a_channel_for_each_curve_of_a_step() -> None:
    torque = {"name": "Torque", "unit": "N·m", "step": "Final", "values": [0.0, 85.2], "interval_ms": 0.5}
    angle = {"name": "Angle of the tool", "unit": "", "step": "Final", "values": [0.0, 41.5], "interval_ms": 0.5}
    assert trace_data(JOINING) == {"channels": [torque, angle]}
    result = {"ResultMetaData": {"ResultId": "R1"}, "ResultContent": [JOINING]}
    assert len(result_data(result)["trace"]["channels"]) == 2


@pytest.mark.parametrize(
    "content", ["text", {}, {"Trace": None}, {"Trace": {"StepTraces": None}}, {"Trace": {"StepTraces": ["odd", {}]}}]
)
def test_joining_without_curves_has_no_trace(content: Any) -> None:
    assert trace_data(content) is None


@pytest.mark.parametrize(
    "damaged",
    [
        {"StepTraces": 3},
        {"StepTraces": [STEP | {"StepTraceContent": 3}]},
        {"StepTraces": [STEP | {"StepTraceContent": [{"Values": 3}]}]},
        {"StepTraces": [STEP | {"StepTraceContent": [{"Values": [1], "EngineeringUnits": "Nm"}]}]},
        {"StepTraces": [STEP | {"StepTraceContent": [{"PhysicalQuantity": [2]}], "SamplingInterval": "x"}]},
        {"StepTraces": [STEP | {"StepTraceContent": CURVES, "StepResultId": [1]}]},
    ],
)
def test_damaged_trace_does_not_lose_its_result(damaged: Any) -> None:
    content = JOINING | {"Trace": damaged}
    found = result_data({"ResultMetaData": {"ResultId": "R1"}, "ResultContent": [content]})
    assert found["result_id"] == "R1"
    assert "trace" not in found or read_trace(found["trace"]) is not None
