"""Formats the result of an action in one line: its evaluation and measured values, else its data."""

from collections.abc import Mapping
from typing import Any

import msgspec

from edge.model.result_part import parts_of
from edge.ports.result_trace import Reference, TraceReference, stored_in


def result_text(result: Any) -> str:
    """Return the evaluation, the values, the number of parts and the traces of a result; its data when it has none."""
    known = result if isinstance(result, Mapping) else {}
    measured = ((name, known.get(name)) for name in ("torque", "angle"))
    values = [f"{name} {_measured(value)}" for name, value in measured if isinstance(value, Mapping)]
    traces = [f"{_kind(found)} {found.size} bytes" for found in stored_in(result)]
    parts = len(parts_of(result))
    count = f"{parts} {'part' if parts == 1 else 'parts'}" if parts else ""
    return ", ".join(filter(None, [str(known.get("evaluation") or ""), *values, count, *traces])) or data_text(result)


def data_text(value: Any) -> str:
    """Return data as JSON with spaces, at which a narrow terminal breaks it; a text as it is."""
    if value is None or isinstance(value, str):
        return value or ""
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode()


def _kind(reference: Reference) -> str:
    return "trace" if isinstance(reference, TraceReference) else f"file {reference.media_type}"


def _measured(value: Mapping[str, Any]) -> str:
    return f"{value.get('value')} {value.get('unit', '')}".rstrip()
