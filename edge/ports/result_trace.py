"""Traces and files of results: the curves that equipment measured, an image that a camera took."""

import gzip
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol

import msgspec
from msgspec import Struct

MEMBER = "trace"
"""The member of a result that holds its trace, and after that the reference to the file."""

FILE_MEMBER = "file"
"""The member of a result that refers to the file which its equipment offered, such as an image."""

RESULTS_MEMBER = "results"
"""The member of a result that holds the results of its parts, by name."""

NOT_CONFIGURED = "[traces] directory is empty"
"""Why a trace or file is not stored on a gateway without a directory for them: nothing is lost there."""

MOST_POINTS = 1_000_000
"""The most points of a trace."""

MOST_LEVELS = 8
"""The most levels of results within results whose traces count: a batch of batches has three."""

FILE_KINDS = (
    (b"\x89PNG\r\n\x1a\n", ".png", "image/png"),
    (b"\xff\xd8\xff", ".jpg", "image/jpeg"),
    (b"II*\0", ".tif", "image/tiff"),
    (b"MM\0*", ".tif", "image/tiff"),
    (b"GIF8", ".gif", "image/gif"),
    (b"%PDF-", ".pdf", "application/pdf"),
    (b"BM", ".bmp", "image/bmp"),
    (b"", ".bin", "application/octet-stream"),
)
"""The kinds of files by their first bytes: the name that a device provides is not used."""

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
        return sum(len(channel.values) for channel in self.channels)


class TraceReference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The trace of a result in its answer: where its file is, or why there is none."""

    points: int
    channels: tuple[str, ...]
    file: str = ""
    sha256: str = ""
    size: int = 0
    error: str = ""


class FileReference(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A file that equipment offered with its result: where it is, or why it is not stored."""

    media_type: str = ""
    file: str = ""
    sha256: str = ""
    size: int = 0
    error: str = ""


def media_type_of(file: str) -> str:
    """Return the media type of a stored file by its ending, which is that of its first bytes."""
    return next((kind for _, suffix, kind in FILE_KINDS if file.endswith(suffix)), "application/octet-stream")


def file_error(error: str) -> Mapping[str, Any]:
    """Return the reference to a file that is not stored, with the reason."""
    found: Mapping[str, Any] = msgspec.to_builtins(FileReference(error=error))
    return found


Reference = TraceReference | FileReference
"""What a result says of a stored file, or of one that could not be stored."""

_KINDS: tuple[tuple[str, type[Reference]], ...] = ((MEMBER, TraceReference), (FILE_MEMBER, FileReference))
_SEARCHED_MEMBERS = frozenset({MEMBER, FILE_MEMBER, RESULTS_MEMBER})


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


def may_hold_files(result: object) -> bool:
    """Return whether a result has a member that can be a trace, a file, or hold further results."""
    return isinstance(result, Mapping) and not _SEARCHED_MEMBERS.isdisjoint(result)


def without_files(result: Any, levels: int = MOST_LEVELS) -> Any:
    """Return a result without its traces and files, also those of the results that it holds."""
    if not levels or not may_hold_files(result):
        return result
    found = {name: value for name, value in result.items() if name not in {MEMBER, FILE_MEMBER}}
    if isinstance(parts := found.get(RESULTS_MEMBER), Mapping):
        found[RESULTS_MEMBER] = {name: without_files(part, levels - 1) for name, part in parts.items()}
    return found


def stored_in(result: object) -> list[Reference]:
    """Return the references to traces and files in a result, also those of the results that it holds."""
    return [reference for reference in _references(result) if reference.file and reference.sha256]


def lost_in(result: object) -> list[str]:
    """Return why traces and files of a result are lost; nothing where the settings name no directory for them."""
    return [reference.error for reference in _references(result) if reference.error not in {"", NOT_CONFIGURED}]


def _references(result: object, levels: int = MOST_LEVELS) -> Iterator[Reference]:
    if not isinstance(result, Mapping) or not levels:
        return
    for member, kind in _KINDS:
        if member in result:
            # Anything else that equipment sends is not a reference.
            with suppress(msgspec.ValidationError):
                yield msgspec.convert(result[member], kind)
    parts = result.get(RESULTS_MEMBER)
    for item in parts.values() if isinstance(parts, Mapping) else ():
        yield from _references(item, levels - 1)


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
