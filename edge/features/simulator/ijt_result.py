"""The result of a simulated tightening: a result of OPC 40450-1 in plain Python, for a target torque."""

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from asyncua import ua

from edge.model.engineering_unit import CEFACT, engineering_unit

OK, NOT_OK = 1, 2
SINGLE, BATCH, INTERVENTION = 1, 3, 6
SIZE, COUNT = 2, 3
"""Types of counters: the size of a batch, and the joinings of it that are done."""
TARGET_NM = 85.0
"""The target torque of a joining process without a torque in its name."""
COMPLETED, ABORTED = 1, 3
_PROGRAM = 1
_FINAL = 1
_TORQUE, _ANGLE = 2, 3
_TOLERANCE = 0.1
_NOK_FACTOR = 1.2
_OK_FACTOR = 1.0024


def target_of(process: str) -> float:
    """Return the target torque in the name of a process, such as `85Nm`; TARGET_NM without one."""
    found = re.search(r"(\d+(?:\.\d+)?) ?Nm", process)
    return float(found.group(1)) if found else TARGET_NM


def meta_data(
    number: int,
    process: str,
    entities: Sequence[Mapping[str, Any]],
    at: datetime,
    *,
    evaluation: int,
    classification: int,
    counters: Sequence[Mapping[str, Any]] = (),
) -> dict[str, Any]:
    """Return the meta data of a result (JoiningResultMetaDataType); `number` is its sequence number."""
    return {
        "ResultId": f"T{number}",
        "IsPartial": False,
        "IsSimulated": True,
        "ResultState": ABORTED if classification == INTERVENTION else COMPLETED,
        "CreationTime": at,
        "ResultEvaluation": evaluation,
        "JoiningTechnology": "Tightening",
        "SequenceNumber": number,
        "Name": process,
        "Classification": classification,
        "AssociatedEntities": list(entities),
        **({"ResultCounters": list(counters)} if counters else {}),
    }


def content(target: float, evaluation: int, points: int = 0) -> dict[str, Any]:
    """Return the measured values (JoiningResultDataType): a torque in N·m near its target, or beyond its limit.

    With `points`, it has a trace: curves of torque and angle of the final step.
    """
    torque = _torque(round(target * (_OK_FACTOR if evaluation == OK else _NOK_FACTOR), 1), target, evaluation)
    step = {
        "StepResultId": "S1",
        "ProgramStep": "1",
        "Name": "Rundown",
        "ResultEvaluation": OK,
        "StepResultValues": [_torque(round(target / 10, 1), None, OK), _angle(720.0)],
    }
    final = {
        "StepResultId": "S2",
        "ProgramStep": "2",
        "Name": "Final",
        "ResultEvaluation": evaluation,
        "StepResultValues": [torque, _angle(41.5)],
    }
    failed = {"FailureReason": _PROGRAM, "FailingStepResultId": "S2"} if evaluation == NOT_OK else {}
    trace = {"Trace": _trace(torque["MeasuredValue"], 41.5, points)} if points else {}
    return {"OverallResultValues": [torque, _angle(41.5)], "StepResults": [step, final], **failed, **trace}


def _trace(torque: float, angle: float, points: int) -> dict[str, Any]:
    last = max(points - 1, 1)
    curves = [
        _curve("Torque", _TORQUE, "N·m", [round(torque * (n / last) ** 3, 3) for n in range(points)]),
        _curve("Angle", _ANGLE, "°", [round(angle * n / last, 3) for n in range(points)]),
    ]
    step = {"StepTraceId": "T2", "StepResultId": "S2", "NumberOfTracePoints": points, "SamplingInterval": 1.0}
    return {"StepTraces": [step | {"StepTraceContent": curves}]}


def _curve(name: str, quantity: int, symbol: str, values: Sequence[float]) -> dict[str, Any]:
    return {"Values": list(values), "Name": name, "PhysicalQuantity": quantity, "EngineeringUnits": _unit(symbol)}


def _torque(value: float, target: float | None, evaluation: int) -> dict[str, Any]:
    limits: dict[str, float] = {}
    if target is not None:
        limits = {
            "LowLimit": round(target * (1 - _TOLERANCE), 1),
            "HighLimit": round(target * (1 + _TOLERANCE), 1),
            "TargetValue": target,
        }
    return _value("Torque", _TORQUE, "N·m", value) | limits | {"ResultEvaluation": evaluation}


def _angle(value: float) -> dict[str, Any]:
    return _value("Angle", _ANGLE, "°", value) | {"ResultEvaluation": OK}


def _unit(symbol: str) -> ua.EUInformation:
    return ua.EUInformation(
        NamespaceUri=CEFACT, UnitId=engineering_unit(symbol).unit_id, DisplayName=ua.LocalizedText(symbol)
    )


def _value(name: str, quantity: int, symbol: str, value: float) -> dict[str, Any]:
    return {
        "MeasuredValue": value,
        "Name": name,
        "ValueTag": _FINAL,
        "PhysicalQuantity": quantity,
        "EngineeringUnits": _unit(symbol),
    }
