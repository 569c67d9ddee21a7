"""The parts of a result are listed one by one, whatever holds them: a batch, spindles, a job of batches."""

from typing import Any

import pytest

from edge.model.result_part import MeasuredValue, ResultPart, parts_of


def bolt(evaluation: str, torque: float, **further: Any) -> dict[str, Any]:
    return {"evaluation": evaluation, "torque": {"value": torque, "unit": "N·m"}, "result_id": "4711"} | further


@pytest.mark.parametrize(
    ("result", "texts"),
    [
        ({"results": {"1": bolt("OK", 85.2), "2": bolt("NotOK", 12)}},
         ["1: OK, torque 85.2 N·m", "2: NotOK, torque 12 N·m"]),
        ({"results": [bolt("OK", 1), bolt("OK", 2)]}, ["1: OK, torque 1 N·m", "2: OK, torque 2 N·m"]),
        ({"results": {"1": {"results": {"1": bolt("OK", 1), "2": bolt("OK", 2)}}, "2": bolt("OK", 3)}},
         ["1.1: OK, torque 1 N·m", "1.2: OK, torque 2 N·m", "2: OK, torque 3 N·m"]),
        ({"results": [bolt("OK", 84.19999999999999)]}, ["1: OK, torque 84.2 N·m"]),
        ({"results": {"1": {"evaluation": "OK"}, "2": {}, "3": 5}}, ["1: OK", "2: no values"]),
        ({"results": 5}, []),
        ({"torque": {"value": 1, "unit": "N·m"}}, []),
        ("a text", []),
        (None, []),
    ],
)  # fmt: skip
def test_parts_of_a_result_are_listed(result: object, texts: list[str]) -> None:
    assert [result_part.text for result_part in parts_of(result)] == texts


def test_part_has_each_value_with_its_unit() -> None:
    found = bolt("OK", 85.2, angle={"value": 31, "unit": "°"}, limits={"low": 1}, torque_state="OK")
    (part,) = parts_of({"results": {"7": found}})
    assert part == ResultPart(
        name="7",
        evaluation="OK",
        measured=(
            MeasuredValue(name="torque", value=85.2, unit="N·m"),
            MeasuredValue(name="angle", value=31, unit="°"),
        ),
    )


def test_number_and_depth_of_parts_are_bounded() -> None:
    assert len(parts_of({"results": [bolt("OK", 1)] * 700})) == 500
    deep: dict[str, Any] = bolt("OK", 1)
    for _ in range(2000):
        deep = {"results": [deep]}
    assert parts_of(deep) == ()
