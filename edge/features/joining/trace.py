"""Converts the trace of a joining (OPC 40450-1, JoiningTraceDataType) to the curves of a result."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

_QUANTITIES = MappingProxyType({"2": "Torque", "3": "Angle"})


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
        quantity = _QUANTITIES.get(str(curve.get("PhysicalQuantity")), "value")
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
