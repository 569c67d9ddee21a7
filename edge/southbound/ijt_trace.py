"""Converts the trace of a joining (OPC 40450-1, JoiningTraceDataType) to the curves of a result."""

from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any

_QUANTITIES = MappingProxyType({2: "Torque", 3: "Angle"})


def trace_data(content: Any) -> dict[str, Any] | None:
    """Return the trace of a joining as plain JSON, a channel for each curve of each step; None without one."""
    if not isinstance(content, Mapping) or not isinstance(trace := content.get("Trace"), Mapping):
        return None
    names = {
        each.get("StepResultId"): str(each.get("Name") or each.get("ProgramStep") or each.get("StepResultId"))
        for each in content.get("StepResults") or ()
        if isinstance(each, Mapping)
    }
    channels = [channel for step in trace.get("StepTraces") or () for channel in _channels(step, names)]
    return {"channels": channels} if channels else None


def _channels(step: Any, names: Mapping[Any, str]) -> Iterator[dict[str, Any]]:
    if not isinstance(step, Mapping):
        return
    found = {"interval_ms": step.get("SamplingInterval"), "offset_ms": step.get("StartTimeOffset")}
    timing = {name: value for name, value in found.items() if value is not None}
    for curve in step.get("StepTraceContent") or ():
        if not isinstance(curve, Mapping):
            continue
        values = [float(each) for each in curve.get("Values") or () if isinstance(each, int | float)]
        quantity = _QUANTITIES.get(curve.get("PhysicalQuantity") or 0, "value")
        unit = (curve.get("EngineeringUnits") or {}).get("DisplayName") or ""
        step_name = names.get(step.get("StepResultId"), str(step.get("StepTraceId") or ""))
        yield {
            "name": str(curve.get("Name") or quantity),
            "unit": str(unit),
            "step": step_name,
            "values": values,
        } | timing
