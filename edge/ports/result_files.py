"""What keeps the traces and files of results: the feature of traces, or nothing."""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol

import msgspec

from edge.ports.result_trace import (
    MEMBER,
    MOST_LEVELS,
    NOT_CONFIGURED,
    RESULTS_MEMBER,
    FileReference,
    ResultTrace,
    TraceReference,
    read_trace,
)


class ResultFiles(Protocol):
    """What keeps the traces and files of results."""

    async def keep(self, job_id: str, result: Any) -> Any:
        """Store the traces in a result; return the result with references to them."""

    async def store_file(self, job_id: str, parts: AsyncGenerator[bytes, None]) -> FileReference:
        """Store a file of a result, part by part; return the reference to it, or why it is not stored."""


class NoResultFiles:
    """Keeps neither traces nor files: no directory is configured for them."""

    async def keep(self, _job_id: str, result: Any) -> Any:
        """Return a result without its curves."""
        return with_references(result, lambda _, trace: reference_to(trace, error=NOT_CONFIGURED))

    async def store_file(self, _job_id: str, _parts: AsyncGenerator[bytes, None]) -> FileReference:
        """Return why the file is not stored, and read nothing of it."""
        return FileReference(error=NOT_CONFIGURED)


def with_references(
    result: Any, replace: Callable[[Mapping[str, Any], ResultTrace], TraceReference], levels: int = MOST_LEVELS
) -> Any:
    """Return a result whose traces, also those of the results that it holds, are replaced by references."""
    if not has_trace(result, levels):
        return result
    found = dict(result)
    if (trace := read_trace(result.get(MEMBER))) is not None:
        described = {name: result[name] for name in ("result_id", "created_at") if name in result}
        found[MEMBER] = msgspec.json.decode(msgspec.json.encode(replace(described, trace)))
    if isinstance(parts := result.get(RESULTS_MEMBER), Mapping):
        found[RESULTS_MEMBER] = {name: with_references(part, replace, levels - 1) for name, part in parts.items()}
    return found


def reference_to(trace: ResultTrace, **known: Any) -> TraceReference:
    """Return the reference to a trace; `known` are its other fields."""
    return TraceReference(points=trace.points, channels=tuple(channel.name for channel in trace.channels), **known)


def has_trace(result: Any, levels: int = MOST_LEVELS) -> bool:
    """Return whether a result has a trace, or one that it holds."""
    if not isinstance(result, Mapping) or not levels:
        return False
    parts = result.get(RESULTS_MEMBER)
    nested = parts.values() if isinstance(parts, Mapping) else ()
    return read_trace(result.get(MEMBER)) is not None or any(has_trace(value, levels - 1) for value in nested)
