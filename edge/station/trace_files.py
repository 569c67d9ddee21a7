"""Stores the traces of results as files: written and flushed once, referenced only after, bounded and swept."""

import asyncio
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

import msgspec
import structlog

from edge.errors import Refused, Unavailable
from edge.files import make_directory, write_atomically
from edge.links.log_throttle import LogThrottle
from edge.model.result_trace import (
    MEMBER,
    MOST_LEVELS,
    MOST_POINTS,
    ResultTrace,
    TraceReference,
    digest_of,
    encode_trace,
    read_trace,
)

SUFFIX = ".json.gz"
_DIRECTORY_MODE, _FILE_MODE = 0o750, 0o640
_LONGEST_NAME = 150
_SWEEP_SECONDS = 3600.0
_ORPHAN_SECONDS = 3600.0
"""The age at which a file without a reference is one: its answer may wait for the store that long."""
_FILE = re.compile(r"[A-Za-z0-9_%~-]{1,150}/[0-9a-f]{64}\.json\.gz")
_ROOM = 0.95
"""The part of a limit that is left after a sweep, so that not every write sweeps."""

_log = structlog.get_logger(__name__)

IsReferenced = Callable[[str, str], Awaitable[bool]]
"""Returns whether a stored job refers to a hash; True also for a job that is not stored."""


@dataclass(frozen=True, slots=True)
class TraceLimits:
    """The most bytes, files and seconds of age of all traces."""

    max_bytes: int
    max_files: int
    max_age_s: float


@dataclass(frozen=True, slots=True)
class _StoredFile:
    path: Path
    size: int
    at: float


async def drop_traces(_job_id: str, result: Any) -> Any:
    """Return a result without its curves: no directory is configured for them."""
    return _replaced(result, lambda _, trace: _reference(trace, error="[traces] directory is empty"))


class TraceFiles:
    """The files of a directory; a file is named by the job and the hash of its content, so it is written once.

    `lost` counts traces that could not be written.
    """

    def __init__(self, directory: Path, limits: TraceLimits, clock: Callable[[], float] = time.time) -> None:
        self.lost = 0
        self._directory = directory
        self._limits = limits
        self._clock = clock
        self._faults = LogThrottle(_log)
        self._bytes = self._files = 0
        self._is_counted = False
        self._checked_until = 0.0
        self._writing = asyncio.Lock()

    async def keep(self, job_id: str, result: Any) -> Any:
        """Write the traces of a result to files; return the result with references to them.

        A trace that cannot be written is lost, with the reason at its place; the result is not.
        """
        if not _has_trace(result):
            return result
        async with self._writing:
            # The thread cannot be stopped: a cancelled task waits for it.
            working = asyncio.ensure_future(asyncio.to_thread(self._keep_all, job_id, result))
            try:
                return await asyncio.shield(working)
            except asyncio.CancelledError:
                await working
                raise

    async def run(self, is_referenced: IsReferenced) -> None:
        """Remove old files, those beyond the limits and those without a reference, each hour until cancelled."""
        while True:
            try:
                async with self._writing:
                    await asyncio.to_thread(self._sweep)
                await self.remove_orphans(is_referenced)
            except Unavailable as error:
                _log.info("orphaned traces not swept", reason=error.message)
            except OSError as error:
                advice = f"Check the disk and the owner of {self._directory}."
                _log.warning("traces not swept", reason=str(error), advice=advice)
            await asyncio.sleep(_SWEEP_SECONDS)

    async def remove_orphans(self, is_referenced: IsReferenced) -> int:
        """Remove files that the answer of their job does not refer to, as after a crash; return their number.

        Each file is looked at once. Raises Unavailable without the store.
        """
        until = self._clock() - _ORPHAN_SECONDS
        removed = 0
        for each in await asyncio.to_thread(lambda: list(self._stored())):
            if not self._checked_until < each.at <= until or each.path.parent.name.startswith("~"):
                continue
            job_id = unquote(each.path.parent.name)
            if not await is_referenced(job_id, each.path.name.removesuffix(SUFFIX)):
                each.path.unlink(missing_ok=True)
                _log.info("orphaned trace removed", job=job_id, file=each.path.name)
                removed += 1
        self._checked_until = until
        return removed

    def _keep_all(self, job_id: str, result: Any) -> Any:
        return _replaced(result, lambda described, trace: self._keep_one(job_id, described, trace))

    def _keep_one(self, job_id: str, described: Mapping[str, Any], trace: ResultTrace) -> TraceReference:
        if trace.points > MOST_POINTS:
            return _reference(trace, error=f"{trace.points} points, at most {MOST_POINTS} are stored")
        content = encode_trace(trace, {"job": job_id, **described})
        digest = digest_of(content)
        name = f"{directory_of(job_id)}/{digest}{SUFFIX}"
        path = self._directory / name
        try:
            if not path.exists():
                self._write(path, content)
        except OSError as error:
            self.lost += 1
            advice = f"Check the space and the owner of {self._directory}."
            self._faults.warning("trace not stored", "", job=job_id, reason=str(error), advice=advice)
            return _reference(trace, error=error.strerror or type(error).__name__)
        return _reference(trace, file=name, sha256=digest, size=len(content))

    def _write(self, path: Path, content: bytes) -> None:
        if not self._is_counted:
            self._sweep()
        if self._bytes + len(content) > self._limits.max_bytes or self._files + 1 > self._limits.max_files:
            self._sweep(len(content))
        make_directory(path.parent, _DIRECTORY_MODE)
        write_atomically(path, content, _FILE_MODE)
        self._bytes, self._files = self._bytes + len(content), self._files + 1

    def _sweep(self, wanted: int = 0) -> None:
        """Remove files that are too old, then the oldest ones until `wanted` bytes have room. Raises OSError."""
        oldest_first = sorted(self._stored(), key=lambda each: each.at)
        self._bytes, self._files = sum(each.size for each in oldest_first), len(oldest_first)
        self._is_counted = True
        too_old = self._clock() - self._limits.max_age_s
        is_over = self._bytes + wanted > self._limits.max_bytes or self._files + bool(wanted) > self._limits.max_files
        most_bytes = self._limits.max_bytes * _ROOM - wanted
        most_files = self._limits.max_files * _ROOM - bool(wanted)
        for each in oldest_first:
            if each.at >= too_old and not (is_over and (self._bytes > most_bytes or self._files > most_files)):
                break
            each.path.unlink(missing_ok=True)
            self._bytes, self._files = self._bytes - each.size, self._files - 1
        for folder in self._directory.iterdir() if self._directory.is_dir() else ():
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _stored(self) -> Iterator[_StoredFile]:
        """Yield the files; remove what a power cut has left of a write."""
        if not self._directory.is_dir():
            return
        for path in self._directory.glob("*/*"):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            if path.name.endswith(".partial") and found.st_mtime < self._clock() - _ORPHAN_SECONDS:
                path.unlink(missing_ok=True)
            elif path.name.endswith(SUFFIX):
                yield _StoredFile(path, found.st_size, found.st_mtime)


def read_file(directory: Path, reference: TraceReference) -> bytes:
    """Return the content of a file after its hash was compared. Raises Refused."""
    content = _content_of(directory, reference.file)
    if digest_of(content) != reference.sha256:
        reason = f"the content of {reference.file} does not match its hash"
        raise Refused("damaged", reason, "Check the disk, and take another copy.")
    return content


def read_chunk(directory: Path, file: str, offset: int, most: int) -> tuple[bytes, int]:
    """Return at most `most` bytes of a file from an offset on, and the size of the file. Raises Refused."""
    content = _content_of(directory, file)
    return content[offset : offset + most], len(content)


def _content_of(directory: Path, file: str) -> bytes:
    if not _FILE.fullmatch(file):
        raise Refused("parameters", f"{file!r} does not name a trace", "Take `file` of the reference.")
    try:
        return (directory / file).read_bytes()
    except FileNotFoundError:
        reason = f"the trace {file} is not stored any more"
        raise Refused("unknown_trace", reason, "[traces] says how long files are kept.") from None
    except OSError as error:
        reason = f"cannot read {directory / file}: {error.strerror}"
        raise Refused("unreadable", reason, "Check its owner, and the disk.") from error


def directory_of(job_id: str) -> str:
    """Return the directory of a job: its id with other characters encoded, or the hash of a long one."""
    name = quote(job_id, safe="").replace(".", "%2E").replace("~", "%7E")
    return name if 0 < len(name) <= _LONGEST_NAME else f"~{sha256(job_id.encode()).hexdigest()}"


def _has_trace(result: Any, levels: int = MOST_LEVELS) -> bool:
    if not isinstance(result, Mapping) or not levels:
        return False
    parts = result.get("results")
    nested = parts.values() if isinstance(parts, Mapping) else ()
    return read_trace(result.get(MEMBER)) is not None or any(_has_trace(each, levels - 1) for each in nested)


def _replaced(
    result: Any, replace: Callable[[Mapping[str, Any], ResultTrace], TraceReference], levels: int = MOST_LEVELS
) -> Any:
    """Return a result whose traces, also those of the results that it holds, are replaced by references."""
    if not _has_trace(result, levels):
        return result
    found = dict(result)
    if (trace := read_trace(result.get(MEMBER))) is not None:
        described = {name: result[name] for name in ("result_id", "created_at") if name in result}
        found[MEMBER] = msgspec.json.decode(msgspec.json.encode(replace(described, trace)))
    if isinstance(parts := result.get("results"), Mapping):
        found["results"] = {name: _replaced(each, replace, levels - 1) for name, each in parts.items()}
    return found


def _reference(trace: ResultTrace, **known: Any) -> TraceReference:
    return TraceReference(points=trace.points, channels=tuple(each.name for each in trace.channels), **known)
