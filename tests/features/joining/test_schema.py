"""Data of a controller is a valid result, or refused with the place of the error."""

from typing import Any

import pytest

from edge.features.joining.schema import parse_result
from edge.foundation.errors import Refused

META = {"ResultId": "R1"}


def test_valid_result_is_returned_unchanged() -> None:
    part = {"ResultMetaData": META, "ResultContent": [{"OverallResultValues": [{"MeasuredValue": 85.2}]}]}
    result = {"ResultMetaData": META, "ResultContent": [part, "a picture", {"Vendor": 1}], "Vendor": None}
    assert parse_result(result) is result


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        (None, "got `null`"),
        ("T1", "got `str`"),
        ({"ResultContent": []}, "missing required field `ResultMetaData`"),
        ({"ResultMetaData": {}}, "missing required field `ResultId`"),
        ({"ResultMetaData": META | {"AssociatedEntities": "J1/r/work/1"}}, r"\$.ResultMetaData.AssociatedEntities"),
        (
            {"ResultMetaData": META | {"AssociatedEntities": [{"EntityId": ["J1"]}]}},
            r"AssociatedEntities\[0\].EntityId",
        ),
        ({"ResultMetaData": META | {"SequenceNumber": "7"}}, r"\$.ResultMetaData.SequenceNumber"),
        ({"ResultMetaData": META | {"SequenceNumber": float("nan")}}, r"\$.ResultMetaData.SequenceNumber"),
        ({"ResultMetaData": META, "ResultContent": [{"OverallResultValues": [{"Name": "Torque"}]}]}, "`MeasuredValue`"),
        ({"ResultMetaData": META, "ResultContent": [{"StepResults": [None]}]}, "got `null`"),
        ({"ResultMetaData": META, "ResultContent": [{"ResultMetaData": "R2"}]}, "got `str`"),
    ],
)
def test_invalid_result_is_refused(raw: Any, where: str) -> None:
    with pytest.raises(Refused, match=f"a result is not as OPC 40001-101 has it: .*{where}") as refused:
        parse_result(raw)
    assert refused.value.kind == "unreadable"
