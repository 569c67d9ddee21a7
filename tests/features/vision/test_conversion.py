"""Conversion between OPC 40100-1 data and gateway data."""

from typing import Any

import pytest
from msgspec.structs import replace

from edge.features.vision.conversion import answer_data, meas_id_of, parse_result, recipe_of
from edge.foundation.errors import Refused
from tests.equipment.contract import WORK

DONE = {"JobId": {"Id": "V1"}, "ResultId": {"Id": "R1"}, "ResultState": 1, "ResultContent": [True]}


def test_completed_result_is_the_answer() -> None:
    data = answer_data(parse_result(DONE))
    assert (data["result_state"], data["job_id"], data["result_id"], data["content"]) == (
        "Completed",
        "V1",
        "R1",
        [True],
    )


@pytest.mark.parametrize(("state", "name"), [(3, "Aborted"), (4, "Failed"), (0, "Undefined"), (9, "9")])
def test_result_that_did_not_complete_is_refused(state: int, name: str) -> None:
    with pytest.raises(Refused, match=f"the result has the state {name}"):
        answer_data(DONE | {"ResultState": state})


@pytest.mark.parametrize("result", [{}, {"JobId": {"Id": 7}}, {"JobId": None, "MeasId": {"Id": ""}}, "R1", None])
def test_invalid_result_is_refused(result: Any) -> None:
    with pytest.raises(Refused, match="a result is not as OPC 40100-1 has it"):
        parse_result(result)


@pytest.mark.parametrize("job_id", [None, "7", {}, {"Id": 7}, {"Id": ""}])
def test_result_with_a_measurement_needs_no_job_id(job_id: Any) -> None:
    result = parse_result(DONE | {"JobId": job_id, "MeasId": {"Id": "M7"}})
    assert (result["JobId"], result["MeasId"]) == (None, {"Id": "M7"})


def test_recipe_and_measurement_are_read_from_the_parameters() -> None:
    assert (recipe_of(WORK), meas_id_of(WORK)) == ({"Id": "P1"}, WORK.command_id)
    plain = replace(WORK, parameters={"meas_id": "M7"})
    assert (recipe_of(plain), meas_id_of(plain)) == (None, "M7")
