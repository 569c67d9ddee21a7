"""Schema of the fields that are read from a result of a tightening controller (OPC 40001-101, 40450-1)."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from edge.foundation.errors import Refused
from edge.foundation.text import Text

Result = Mapping[str, Any]
"""A ResultDataType (OPC 40001-101) in plain Python."""


class _Entity(Struct):
    EntityId: str | None = None
    Name: str | None = None
    EntityType: int | None = None


class _Counter(Struct):
    CounterValue: int | None = None
    CounterType: int | None = None
    Name: str | None = None


class _MetaData(Struct):
    ResultId: str | None
    SequenceNumber: int | None = None
    Classification: int | None = None
    ResultState: int | None = None
    ResultEvaluation: int | None = None
    ResultEvaluationDetails: str | None = None
    Description: str | None = None
    HasTransferableDataOnFile: bool | None = None
    IsPartial: bool | None = None
    IsSimulated: bool | None = None
    CreationTime: datetime | None = None
    Name: str | None = None
    AssociatedEntities: Sequence[_Entity] | None = None
    ResultCounters: Sequence[_Counter] | None = None


class _Unit(Struct):
    DisplayName: str | None = None


class _Value(Struct):
    MeasuredValue: float | None
    Name: str | None = None
    PhysicalQuantity: int | None = None
    ValueTag: int | None = None
    ResultEvaluation: int | None = None
    ViolationType: int | None = None
    EngineeringUnits: _Unit | None = None
    LowLimit: float | None = None
    HighLimit: float | None = None
    TargetValue: float | None = None


class _StepResult(Struct):
    StepResultId: str | None
    Name: str | None = None
    ProgramStep: str | None = None
    ResultEvaluation: int | None = None
    StepResultValues: Sequence[_Value] | None = None


class _Error(Struct):
    ErrorId: str | int | None = None
    ErrorMessage: str | None = None


class _Joining(Struct):
    OverallResultValues: Sequence[_Value] | None = None
    StepResults: Sequence[_StepResult] | None = None
    FailureReason: int | None = None
    Errors: Sequence[_Error] | None = None


class _Result(Struct):
    ResultMetaData: _MetaData
    ResultContent: Sequence[Any] | None = None


def parse_result(raw: Any) -> Result:
    """Return data of a controller as a validated result. Raises Refused(`unreadable`) when it is not a valid result."""
    try:
        _check(raw)
    except msgspec.ValidationError as error:
        raise Refused(
            "unreadable", Text.of("a result is not as OPC 40001-101 has it: {reason}", reason=error)
        ) from error
    result: Result = raw
    return result


def _check(raw: Any) -> None:
    for value in msgspec.convert(raw, _Result).ResultContent or ():
        # Content that is neither a joining nor a nested result is not read.
        if isinstance(value, Mapping):
            msgspec.convert(value, _Joining)
            if "ResultMetaData" in value:
                _check(value)
