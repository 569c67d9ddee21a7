"""Converts commands to data of OPC 40450-1, and results of a tightening controller to answers."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from edge.equipment.identifiers import identifier, validate_identifiers, validate_named_identifiers
from edge.features.joining.schema import Result
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.sfc.identifiers import parse_command_id
from edge.station.equipment import Command

_CURVE_QUANTITIES = MappingProxyType({"2": "Torque", "3": "Angle"})


def trace_data(content: Any) -> dict[str, Any] | None:
    """Return the trace of a joining as plain JSON, a channel for each curve of each step; None without one."""
    if not isinstance(content, Mapping) or not isinstance(trace := content.get("Trace"), Mapping):
        return None
    names = {
        str(mapping.get("StepResultId")): str(
            mapping.get("Name") or mapping.get("ProgramStep") or mapping.get("StepResultId")
        )
        for mapping in _mappings(content.get("StepResults"))
    }
    channels = [channel for step in _mappings(trace.get("StepTraces")) for channel in _channels(step, names)]
    return {"channels": channels} if channels else None


def _channels(step: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    found = {"interval_ms": step.get("SamplingInterval"), "offset_ms": step.get("StartTimeOffset")}
    timing = {name: value for name, value in found.items() if isinstance(value, int | float)}
    for curve in _mappings(step.get("StepTraceContent")):
        values = [float(entry) for entry in _entries(curve.get("Values")) if isinstance(entry, int | float)]
        quantity = _CURVE_QUANTITIES.get(str(curve.get("PhysicalQuantity")), "value")
        units = curve.get("EngineeringUnits")
        unit = (units.get("DisplayName") if isinstance(units, Mapping) else None) or ""
        step_name = names.get(str(step.get("StepResultId")), str(step.get("StepTraceId") or ""))
        yield {
            "name": str(curve.get("Name") or quantity),
            "unit": str(unit),
            "step": step_name,
            "values": values,
        } | timing


def _mappings(found: Any) -> Iterator[Mapping[str, Any]]:
    return (entry for entry in _entries(found) if isinstance(entry, Mapping))


def _entries(found: Any) -> Sequence[Any]:
    """Return the entries of an array; none where a controller sends something else, as the result must not be lost."""
    return found if isinstance(found, Sequence) and not isinstance(found, str | bytes) else ()


COMMAND_ID = "CommandID"
"""The name of the identifier that holds the id of a command."""

_OTHER, _ORDER, _TASK = 1, 25, 31
# The parameters that are identifiers, with their names at the controller and their EntityType (OPC 40450-1, 10.10).
_IDENTIFIERS = MappingProxyType(
    {"vin": ("VIN", 20), "product_id": ("ProductID", 21), "part_id": ("PartID", 22), "joint_id": ("JointID", 23)}
)
_PROCESS = MappingProxyType(
    {
        "joining_process_id": "JoiningProcessId",
        "joining_process_origin_id": "JoiningProcessOriginId",
        "selection_name": "SelectionName",
    }
)
CLASSIFICATIONS = MappingProxyType({"single": 1, "sync": 2, "batch": 3, "job": 4, "stitching": 5})
_INTERVENTION = 6
_EVALUATIONS = MappingProxyType({0: "Undefined", 1: "OK", 2: "NotOK", 3: "NotDecidable"})
_NOT_OK = 2
_UNFINISHED = MappingProxyType({3: "Aborted", 4: "Failed"})
_FAILURE_REASONS = MappingProxyType({1: "program", 2: "step", 3: "error"})
_FINAL = 1
# Types of counters (OPC 40450-1, 10.11).
_COUNTERS = MappingProxyType(
    {
        2: "batch_size",
        3: "batch_count",
        4: "retry_count",
        5: "socket_number",
        6: "channel_number",
        7: "spindle_number",
        8: "total_number_of_channels",
        9: "total_number_of_spindles",
        10: "total_joining_process_size",
        11: "job_size",
        12: "job_count",
    }
)
_JOINING_PROCESS = 26
# Physical quantities (OPC 40450-1, 9.1).
_QUANTITIES = MappingProxyType({"torque": 2, "angle": 3})


def entities(command: Command) -> list[dict[str, Any]]:
    """Return the identifiers of a command: its own id, the id of its job order, and those in its parameters."""
    entities_by_name = {COMMAND_ID: (command.command_id, _TASK), "JobOrderID": (command.job_id, _ORDER)}
    for parameter, (name, entity_type) in _IDENTIFIERS.items():
        if value := identifier(command, parameter):
            entities_by_name[name] = value, entity_type
    others = command.parameters.get("identifiers", {})
    entities_by_name |= {str(name): (value, _OTHER) for name, value in others.items() if value is not None}
    return [
        {"Name": name, "EntityId": str(value), "IsExternal": True, "EntityType": entity_type}
        for name, (value, entity_type) in entities_by_name.items()
    ]


def process(command: Command) -> dict[str, str]:
    """Return the joining process of a command as JoiningProcessIdentificationDataType; empty when it names none."""
    return {field: str(value) for name, field in _PROCESS.items() if (value := command.parameters.get(name))}


def validate_command(command: Command) -> None:
    """Raise Refused when an identifier or the parameter `classification` of a command is invalid."""
    validate_identifiers(command, (*_IDENTIFIERS, "joint_origin_id"))
    validate_named_identifiers(command, "identifiers")
    wanted = command.parameters.get("classification", "single")
    if wanted not in CLASSIFICATIONS:
        raise Refused(
            "parameters",
            Text.of(
                "the parameter classification has to be one of {classifications}",
                classifications=", ".join(CLASSIFICATIONS),
            ),
        )


def classification_of(meta: Mapping[str, Any]) -> str:
    """Return the classification of a result by its name; empty for one that no command expects."""
    number = meta.get("Classification")
    return next((name for name, known in CLASSIFICATIONS.items() if known == number), "")


def classifications_of(result: Result) -> frozenset[str]:
    """Return the classifications of commands that a result answers: all of them for an intervention."""
    meta = result["ResultMetaData"]
    if meta.get("Classification") == _INTERVENTION:
        return frozenset(CLASSIFICATIONS)
    name = classification_of(meta)
    return frozenset({name}) if name else frozenset()


def entity_ids(meta: Mapping[str, Any]) -> set[str]:
    """Return the ids of everything that a result names."""
    return {str(entity["EntityId"]) for entity in meta.get("AssociatedEntities") or () if entity.get("EntityId")}


def process_ids(meta: Mapping[str, Any]) -> set[str]:
    """Return the ids of the joining processes that a result names."""
    entities_of_it = meta.get("AssociatedEntities") or ()
    named = [value for value in entities_of_it if value.get("EntityType") == _JOINING_PROCESS]
    return {str(value["EntityId"]) for value in named if value.get("EntityId")}


def is_single(result: Result) -> bool:
    """Return whether a result is that of a single joining."""
    return bool(result["ResultMetaData"].get("Classification") == CLASSIFICATIONS["single"])


def joinings_in(result: Result) -> list[Result]:
    """Return the results that a result holds, such as those of the joinings of a batch."""
    return [content for content in result.get("ResultContent") or () if is_result(content)]


def is_result(content: object) -> bool:
    """Return whether what a result holds is a result itself."""
    return isinstance(content, Mapping) and "ResultMetaData" in content


def was_aborted(result: Result) -> bool:
    """Return whether a result is an intervention without content: it only reports that its joining was aborted."""
    meta = result["ResultMetaData"]
    return meta.get("Classification") == _INTERVENTION and not result.get("ResultContent")


def command_id_of(result: Result) -> str | None:
    """Return the command id that a result contains; None when it contains none of ours."""
    entities_of_it = result["ResultMetaData"].get("AssociatedEntities") or ()
    found = [value["EntityId"] for value in entities_of_it if value.get("EntityId") and is_command_id(value)]
    return found[-1] if found else None


def is_command_id(entity: Mapping[str, Any]) -> bool:
    """Return whether an entity is the id of a command; an id that was sent as plain text has no name."""
    name = entity.get("Name")
    return name == COMMAND_ID or (not name and parse_command_id(entity["EntityId"]) is not None)


def raw_command_id(raw: object) -> str | None:
    """Return the command id in data that are not a valid result; None when it contains none of ours."""
    meta = raw.get("ResultMetaData") if isinstance(raw, Mapping) else None
    found = meta.get("AssociatedEntities") if isinstance(meta, Mapping) else None
    named = [value for value in found if isinstance(value, Mapping)] if isinstance(found, Sequence) else []
    ids = [entry["EntityId"] for entry in named if isinstance(entry.get("EntityId"), str) and is_command_id(entry)]
    return ids[-1] if ids else None


def answer_data(result: Result, parts: Sequence[Result] = ()) -> dict[str, Any]:
    """Return a result as plain JSON; raises Refused when the joining did not finish.

    `parts` are the results of its joinings, for a controller whose result of a batch does not hold them.
    """
    meta = result["ResultMetaData"]
    state = meta.get("ResultState")
    if state in _UNFINISHED or meta.get("Classification") == _INTERVENTION:
        why = meta.get("ResultEvaluationDetails") or meta.get("Description") or _UNFINISHED.get(state, "Aborted")
        raise Refused("device", Text.of("the joining did not come to its end: {why}", why=why))
    data = result_data(result)
    if parts and "results" not in data:
        data["results"] = _by_name((str(n), result_data(part)) for n, part in enumerate(parts, 1))
    return data


def result_data(result: Result) -> dict[str, Any]:
    """Return a result as plain JSON, whatever the outcome of its joining."""
    meta, contents = result["ResultMetaData"], result.get("ResultContent") or []
    traces = [trace for content in contents if (trace := trace_data(content)) is not None]
    measured = [content for content in contents if isinstance(content, Mapping) and "OverallResultValues" in content]
    parts = joinings_in(result)
    return {
        "evaluation": _evaluation(meta),
        **_identified(meta),
        **({"trace": traces[0]} if traces else {}),
        **({"counters": _counters(meta["ResultCounters"])} if meta.get("ResultCounters") else {}),
        **(_measured(measured[0]) if measured else {}),
        **({"results": _by_name((str(n + 1), result_data(part)) for n, part in enumerate(parts))} if parts else {}),
        "result_id": meta["ResultId"],
        "sequence_number": meta.get("SequenceNumber"),
        "is_simulated": bool(meta.get("IsSimulated")),
        "created_at": meta.get("CreationTime"),
    }


def _identified(meta: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a result says about the part: identifiers by our names, the process, and every other by its name."""
    found: dict[str, Any] = {"process": meta["Name"]} if meta.get("Name") else {}
    own = {entity_type: parameter for parameter, (_, entity_type) in _IDENTIFIERS.items()} | {
        _JOINING_PROCESS: "process"
    }
    others: dict[str, Any] = {}
    for item in meta.get("AssociatedEntities") or ():
        name, value = item.get("Name") or "", item.get("EntityId")
        if (known := own.get(item.get("EntityType") or 0)) is not None:
            found[known] = value
        elif name.casefold() == "operator":
            found["operator"] = value
        elif name not in {"", COMMAND_ID, "JobOrderID"}:
            others[name] = value
    return found | ({"identifiers": others} if others else {})


def _counters(counters: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    return _by_name(
        (
            _COUNTERS.get(counter.get("CounterType") or 0) or str(counter.get("Name") or "counter"),
            counter.get("CounterValue"),
        )
        for counter in counters
    )


def _measured(joining: Mapping[str, Any]) -> dict[str, Any]:
    """Return the measured values (JoiningResultDataType); `violations` repeats those out of limits, with the limits."""
    overall, steps = joining["OverallResultValues"] or [], joining.get("StepResults") or []
    data: dict[str, Any] = {
        **_quantities(overall),
        "values": _by_name((_name(value), _value(value)) for value in overall),
        "violations": _by_name(_violations(overall, steps)),
        "steps": _by_name((_step_name(step), _step(step)) for step in steps),
    }
    if reason := _FAILURE_REASONS.get(joining.get("FailureReason") or 0):
        data["failure_reason"] = reason
    if errors := joining.get("Errors"):
        data["errors"] = _by_name((str(error.get("ErrorId") or "error"), error.get("ErrorMessage")) for error in errors)
    return data


def _step(step: Mapping[str, Any]) -> dict[str, Any]:
    values = step.get("StepResultValues") or []
    return {
        "evaluation": _evaluation(step),
        **_quantities(values),
        "values": _by_name((_name(value), _value(value)) for value in values),
    }


def _violations(
    overall: Sequence[Mapping[str, Any]], steps: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[str, dict[str, Any]]]:
    found = [(_name(entry), entry) for entry in overall]
    found += [
        (f"{_step_name(step)}: {_name(value)}", value) for step in steps for value in step.get("StepResultValues") or []
    ]
    for name, fields in found:
        if fields.get("ResultEvaluation") == _NOT_OK or fields.get("ViolationType"):
            limits = {"low": "LowLimit", "high": "HighLimit", "target": "TargetValue"}
            bounds = {limit: _value(fields, field) for limit, field in limits.items() if fields.get(field) is not None}
            number = {"violation_type": fields["ViolationType"]} if fields.get("ViolationType") else {}
            yield name, {"measured": _value(fields)} | bounds | number | _violation(fields)


def _violation(value: Mapping[str, Any]) -> dict[str, str]:
    """Return which limit a value violates; the specification does not name the numbers of ViolationType."""
    measured, low, high = value.get("MeasuredValue"), value.get("LowLimit"), value.get("HighLimit")
    if measured is not None and low is not None and measured < low:
        return {"violation": "Low"}
    if measured is not None and high is not None and measured > high:
        return {"violation": "High"}
    return {}


def _quantities(values: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return torque and angle: the final values if the controller marks them, else the first ones."""
    found = {}
    for name, quantity in _QUANTITIES.items():
        fitting = [value for value in values if value.get("PhysicalQuantity") == quantity]
        final = [entry for entry in fitting if entry.get("ValueTag") == _FINAL]
        if fitting:
            found[name] = _value((final or fitting)[0])
    return found


def _value(entry: Mapping[str, Any], field: str = "MeasuredValue") -> dict[str, Any]:
    unit = (entry.get("EngineeringUnits") or {}).get("DisplayName")
    return {"value": entry[field]} | ({"unit": unit} if unit else {})


def _evaluation(of: Mapping[str, Any]) -> str:
    number = of.get("ResultEvaluation") or 0
    return _EVALUATIONS.get(number, str(number))


def measured_values(result: Result) -> tuple[object, ...]:
    """Return the final torque and angle of a result, None for one that it does not have or that is not a number."""
    contents = result.get("ResultContent") or ()
    measured = [content for content in contents if isinstance(content, Mapping) and "OverallResultValues" in content]
    values = _quantities(measured[0]["OverallResultValues"] or []) if measured else {}
    measured_ones = [values[name]["value"] if name in values else None for name in _QUANTITIES]
    # Not a number differs from itself: the same result would be another one each time.
    return tuple(None if isinstance(value, float) and math.isnan(value) else value for value in measured_ones)


def _name(value: Mapping[str, Any]) -> str:
    quantities = {quantity: name for name, quantity in _QUANTITIES.items()}
    return str(value.get("Name") or quantities.get(value.get("PhysicalQuantity") or 0, "value"))


def _step_name(step: Mapping[str, Any]) -> str:
    return str(step.get("Name") or step.get("ProgramStep") or step["StepResultId"])


def _by_name(items: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Collect items by name; a repeated name gets a number."""
    found: dict[str, Any] = {}
    times: Counter[str] = Counter()
    for name, value in items:
        key = name
        while key in found:
            times[name] += 1
            key = f"{name} #{times[name] + 1}"
        found[key] = value
    return found
