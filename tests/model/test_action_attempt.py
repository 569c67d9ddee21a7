"""Attempts become parameters of a job response."""

from typing import Any

import msgspec
import pytest

from edge.model.action_attempt import ActionAttempt, attempts_parameter, joining_process_of, result_parameter
from edge.model.isa95 import Parameter


def values(parameter: Parameter) -> dict[str, object]:
    """Return the values of the subparameters by their ids."""
    return {subparameter.id: subparameter.value for subparameter in parameter.subparameters or ()}


def test_successful_attempt_has_only_state_and_times() -> None:
    (parameter,) = attempts_parameter([ActionAttempt("bolt/1", "completed", 1_000, 2_500)]).subparameters or ()
    assert parameter.id == "bolt/1"
    times = {"start": "1970-01-01T00:00:01.000+00:00", "end": "1970-01-01T00:00:02.500+00:00"}
    assert values(parameter) == {"state": "completed"} | times


def test_late_attempt_has_error_operator_and_result() -> None:
    late = ActionAttempt("bolt/r2", "failed", None, None, "broken", "ops", late=True, result={"value": 1, "unit": "Nm"})
    (parameter,) = attempts_parameter([late]).subparameters or ()
    assert [subparameter.id for subparameter in parameter.subparameters or ()] == [
        "state",
        "late",
        "error",
        "resolved_by",
        "result",
    ]
    assert (parameter.subparameters or ())[-1] == result_parameter("result", {"value": 1, "unit": "Nm"})


def test_attempt_is_stored_as_an_array_whose_end_may_be_missing() -> None:
    read = msgspec.json.decode('["bolt/1","completed",1,2]', type=ActionAttempt)
    assert read == ActionAttempt("bolt/1", "completed", 1, 2)


@pytest.mark.parametrize(
    ("parameters", "process"),
    [
        ({"joining_process_id": "JP-1", "selection_name": "other"}, "JP-1"),
        ({"joining_process_id": "", "selection_name": 7}, "7"),
        ({"torque": 85}, None),
        ({}, None),
    ],
)
def test_joining_process_is_read_from_the_parameters(parameters: dict[str, Any], process: str | None) -> None:
    assert joining_process_of(parameters) == process
