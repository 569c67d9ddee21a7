"""Converts commands to identifiers of Open Protocol, and results of a controller to answers."""

from collections.abc import Mapping, Sequence
from datetime import MAXYEAR, datetime
from types import MappingProxyType
from typing import Any, TypeAlias

from edge.equipment.identifiers import identifier, validate_identifiers
from edge.features.openprotocol.protocol.trace import CurveMessage
from edge.foundation.errors import Refused
from edge.foundation.instant import local
from edge.foundation.text import Text
from edge.station.equipment import Command

TighteningResult: TypeAlias = Mapping[str, Any]
"""The fields of MID 0061 or 0065."""

VIN_LENGTH = 17
"""The characters of a vehicle identification number (ISO 3779); the mark follows it."""

_IDENTIFIER_LENGTH = 25
_LARGEST_PARAMETER_SET, _LARGEST_JOB, _LARGEST_BATCH = 999, 9999, 99
_BOUNDS = MappingProxyType({"parameter_set": _LARGEST_PARAMETER_SET, "job": _LARGEST_JOB, "batch_size": _LARGEST_BATCH})
_CLASSIFICATIONS = ("single", "batch")
_BATCH_OK = 1
_EVALUATIONS = MappingProxyType({0: "NotOK", 1: "OK"})
_LIMIT_STATES = MappingProxyType({0: "Low", 1: "OK", 2: "High"})
_BATCH_STATES = MappingProxyType({0: "NotOK", 1: "OK"})
_UNITS = MappingProxyType({1: "N·m", 2: "lbf·ft", 3: "lbf·in", 4: "kp·m", 5: "kgf·cm", 6: "ozf·in", 7: "%", 8: "N·cm"})
_DEGREES = "°"


def validate_command(command: Command, correlation: str) -> None:
    """Raise Refused when a parameter of a command is invalid."""
    for name in _BOUNDS:
        number_of(command, name)
    if number_of(command, "parameter_set") is not None and number_of(command, "job") is not None:
        raise Refused("parameters", "a command has either the parameter parameter_set or the parameter job")
    wanted = command.parameters.get("classification", "single")
    if wanted not in _CLASSIFICATIONS:
        raise Refused(
            "parameters",
            Text.of(
                "the parameter classification has to be one of {classifications}",
                classifications=", ".join(_CLASSIFICATIONS),
            ),
        )
    validate_identifiers(command, ("vin",))
    vin, longest = identifier(command, "vin"), VIN_LENGTH if correlation == "mark" else _IDENTIFIER_LENGTH
    if len(vin) > longest or not vin.isascii() or not vin.isprintable():
        raise Refused(
            "parameters",
            Text.of(
                "the parameter vin has to be at most {longest} ASCII characters: {vin!r}", longest=longest, vin=vin
            ),
        )


def number_of(command: Command, name: str) -> int | None:
    """Return a parameter that is a number, None when it is absent; raises Refused when it is out of its range."""
    value = command.parameters.get(name)
    if value is None or value == "":
        return None
    largest = _BOUNDS[name]
    if isinstance(value, str) and value.isdecimal():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        raise Refused(
            "parameters",
            Text.of(
                "the parameter {name} has to be a number from 1 to {largest}, not {value}",
                name=name,
                largest=largest,
                value=repr(value),
            ),
        )
    return value


def identifier_of(command: Command, correlation: str) -> str:
    """Return the identifier that the result of a command will have: its VIN, with the mark of the command."""
    vin = identifier(command, "vin")
    if correlation != "mark":
        return vin
    return f"{vin:<{VIN_LENGTH}}{command.mark[: _IDENTIFIER_LENGTH - VIN_LENGTH]}" if vin else command.mark


Curves: TypeAlias = Mapping[int, Sequence[CurveMessage]]
"""The curves of results, by the numbers of these."""

NO_CURVES: Curves = MappingProxyType({})


def result_data(result: TighteningResult, curves: Curves = NO_CURVES) -> dict[str, Any]:
    """Return a result as plain JSON, with its curves."""
    unit = _UNITS.get(result.get("torque_unit") or 1, "")
    batch = result.get("batch_status")
    data: dict[str, Any] = {
        "evaluation": _EVALUATIONS.get(result.get("status") or 0, "NotOK"),
        "torque": _value(result.get("torque"), unit),
        "angle": _value(result.get("angle"), _DEGREES),
        "torque_status": _state(result, "torque"),
        "angle_status": _state(result, "angle"),
        "violations": _violations(result, unit),
        "identifier": result.get("identifier") or "",
        "parameter_set": result.get("parameter_set"),
        "job": result.get("job") or None,
        "batch": {
            "size": result.get("batch_size"),
            "counter": result.get("batch_counter"),
            "status": _BATCH_STATES.get(batch) if batch is not None else None,
        },
        "result_id": str(result.get("result") or 0),
        "created_at": created_at(result),
    }
    named = ("tool_serial", "controller", "parameter_set_name", "plot")
    if "spindles" in result:
        data |= {"results": {str(spindle["spindle"]): _spindle(spindle, unit) for spindle in result["spindles"]}}
    found = [_channel(curve) for curve in curves.get(result.get("result") or 0, ())]
    trace = {"trace": {"channels": found}} if found else {}
    return data | {name: result[name] for name in named if result.get(name)} | trace


def _spindle(record: Mapping[str, Any], unit: str) -> dict[str, Any]:
    """Return the result of one spindle of several; the states of its values are 0 or 1."""
    return {
        "evaluation": _EVALUATIONS.get(record["status"] or 0, "NotOK"),
        "channel": record["channel"],
        "torque": _value(record["torque"], unit),
        "angle": _value(record["angle"], _DEGREES),
        "torque_status": _EVALUATIONS.get(record["torque_status"] or 0, "NotOK"),
        "angle_status": _EVALUATIONS.get(record["angle_status"] or 0, "NotOK"),
    }


def _channel(curve: CurveMessage) -> dict[str, Any]:
    timing = {} if curve.interval_ms is None else {"interval_ms": curve.interval_ms}
    return {"name": curve.name, "unit": curve.unit, "values": list(curve.values)} | timing


def is_batch(command: Command) -> bool:
    """Return whether a command is answered by the results of a whole batch."""
    return command.parameters.get("classification") == "batch"


def is_last_of_batch(result: TighteningResult) -> bool:
    """Return whether a batch is complete: the controller says so, or its counter has reached its size."""
    size, counter = result.get("batch_size") or 0, result.get("batch_counter") or 0
    return result.get("batch_status") == _BATCH_OK or 0 < size <= counter


def size_of_batch(results: Sequence[TighteningResult]) -> int:
    """Return how many good tightenings a batch needs: its size, else its last count; 0 where no result says so.

    A result that was requested in revision 1 has the count only.
    """
    sizes, counts = ([result.get(name) or 0 for result in results] for name in ("batch_size", "batch_counter"))
    return max(sizes, default=0) or max(counts, default=0)


def lacking(results: Sequence[TighteningResult]) -> int:
    """Return how many results at least are missing of a batch whose last one has come."""
    return max(0, size_of_batch(results) - len(results))


def answer_data(results: Sequence[TighteningResult], command: Command, curves: Curves = NO_CURVES) -> dict[str, Any]:
    """Return the results of a command as plain JSON, with the VIN of the command."""
    vin = {"vin": vin} if (vin := identifier(command, "vin")) else {}
    return (batch_data(results, curves) if is_batch(command) else result_data(results[0], curves)) | vin


def batch_data(results: Sequence[TighteningResult], curves: Curves = NO_CURVES) -> dict[str, Any]:
    """Return the results of a whole batch as plain JSON."""
    parts = [result_data(result, curves) for result in results]
    done = sum(part["evaluation"] == "OK" for part in parts)
    last = parts[-1]
    kept = {name: last[name] for name in ("identifier", "parameter_set", "job", "batch", "result_id", "created_at")}
    is_ok = done >= size if (size := size_of_batch(results)) else last["batch"]["status"] == "OK" or done == len(parts)
    return {
        "evaluation": "OK" if is_ok else "NotOK",
        "counts": {"ok": done, "not_ok": len(parts) - done},
        "results": {str(n): part for n, part in enumerate(parts, 1)},
        **kept,
    }


def instant_of(result: TighteningResult) -> datetime | None:
    """Return when a result was made, in the local time of the controller, without a zone; None where it is unknown."""
    instant = result.get("time")
    # The last year is how a program writes that there is no date: every later result would be older.
    return instant if isinstance(instant, datetime) and instant.year < MAXYEAR else None


def created_at(result: TighteningResult) -> datetime | None:
    """Return when a result was made; the zone of its controller is that of this machine."""
    instant = instant_of(result)
    return None if instant is None else local(instant)


def _violations(result: TighteningResult, unit: str) -> dict[str, Any]:
    """Return the values beyond their limits, with the limits that the controller reports."""
    found = {}
    for name, symbol in (("torque", unit), ("angle", _DEGREES)):
        if _state(result, name) in {"Low", "High"}:
            limits = {"low": "min", "high": "max", "target": "target"}
            bounds = {limit: _value(result.get(f"{name}_{field}"), symbol) for limit, field in limits.items()}
            known = {limit: value for limit, value in bounds.items() if value}
            found[name.title()] = {"measured": _value(result.get(name), symbol), **known}
    return found


def _state(result: TighteningResult, name: str) -> str:
    number = result.get(f"{name}_status")
    return "Undefined" if number is None else _LIMIT_STATES.get(number, "Undefined")


def _value(number: float | None, unit: str) -> dict[str, Any] | None:
    return None if number is None else {"value": number, "unit": unit}
