"""Traces of OPC 40450-1 as curves."""

from typing import Any

import pytest

from edge.features.joining.conversion import result_data
from edge.features.joining.trace import trace_data
from edge.ports.result_trace import read_trace

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
