"""A trace: the curves that equipment measured during one result, as it travels and as it is stored in a file."""

import gzip
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

MEMBER = "trace"
"""The member of a result that holds its trace, and after that the reference to the file."""

MOST_POINTS = 1_000_000
"""The most points of a trace."""

MOST_LEVELS = 8
"""The most levels of results within results whose traces count: a batch of batches has three."""

_LEVEL = 6


class TraceChannel(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One curve of a step: values at a constant interval in milliseconds, from `offset_ms` on."""

    name: str
    values: Sequence[float]
    unit: str = ""
    interval_ms: float | None = None
    offset_ms: float | None = None
    step: str = ""


class ResultTrace(Struct, frozen=True, kw_only=True):
    """The curves of one result."""

    channels: tuple[TraceChannel, ...]

    @property
    def points(self) -> int:
        """The number of values of all curves."""
        return sum(len(each.values) for each in self.channels)


class TraceReference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The trace of a result in its answer: where its file is, or why there is none."""

    points: int
    channels: tuple[str, ...]
    file: str = ""
    sha256: str = ""
    size: int = 0
    error: str = ""


def read_trace(data: object) -> ResultTrace | None:
    """Return a member of a result as a trace; None for anything else."""
    if not isinstance(data, Mapping) or "channels" not in data or "points" in data:
        return None
    try:
        return msgspec.convert(data, ResultTrace)
    except msgspec.ValidationError:
        return None


def encode_trace(trace: ResultTrace, described: Mapping[str, Any]) -> bytes:
    """Encode a trace as a file: gzipped JSON, with what describes its result; the same trace is the same bytes."""
    document = {"format": "microdcs-edge trace 1", **described, "channels": trace.channels}
    return gzip.compress(msgspec.json.encode(document), _LEVEL, mtime=0)


def digest_of(content: bytes) -> str:
    """Return the hash of a file as its reference has it."""
    return hashlib.sha256(content).hexdigest()


def references_in(result: object, levels: int = MOST_LEVELS) -> list[TraceReference]:
    """Return the references to files in a result, also those of the results that it holds."""
    if not isinstance(result, Mapping) or not levels:
        return []
    own = _read_reference(result.get(MEMBER))
    parts = result.get("results")
    nested = parts.values() if isinstance(parts, Mapping) else ()
    return [*([own] if own else []), *(found for each in nested for found in references_in(each, levels - 1))]


def _read_reference(data: object) -> TraceReference | None:
    """Return a reference to a file; None for anything else that equipment sends."""
    try:
        found = msgspec.convert(data, TraceReference)
    except msgspec.ValidationError:
        return None
    return found if found.file and found.sha256 else None
