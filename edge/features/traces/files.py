"""Stores the traces and files of results: written and flushed once, referenced only after, bounded and swept."""

import asyncio
import os
import re
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import aclosing, contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any, BinaryIO, TypeVar
from urllib.parse import quote, unquote
from uuid import uuid4

import structlog
from msgspec import Struct

from edge.features.traces.curves import drawn
from edge.foundation.errors import Refused, Unavailable
from edge.foundation.files import make_directory, replace_atomically, sync, write_atomically
from edge.foundation.rate_limit import LogThrottle
from edge.foundation.text import Text
from edge.foundation.threads import run_in_thread
from edge.ports.result_trace import (
    FILE_KINDS,
    MOST_POINTS,
    FileReference,
    Reference,
    ResultTrace,
    TraceReference,
    digest_of,
    encode_trace,
    has_trace,
    reference_to,
    with_references,
)

SUFFIX = ".json.gz"
_SUFFIXES = (SUFFIX, *dict.fromkeys(suffix for _, suffix, _ in FILE_KINDS))
_DIRECTORY_MODE, _FILE_MODE = 0o750, 0o640
_LONGEST_NAME = 150
_LONGEST_START = 16
_LONGEST_ERROR = 500
_SWEEP_SECONDS = 3600.0
_ORPHAN_SECONDS = 3600.0
"""The age at which a file without a reference is one: its answer may wait for the store that long."""
_FILE = re.compile(rf"[A-Za-z0-9_%~-]{{1,150}}/[0-9a-f]{{64}}({'|'.join(map(re.escape, _SUFFIXES))})")
_RECEIVED = ".received"
_ROOM = 0.95
"""The part of a limit that is left after a sweep, so that not every write sweeps."""

_log = structlog.get_logger(__name__)

_T = TypeVar("_T")
IsReferenced = Callable[[str, str], Awaitable[bool]]
"""Returns whether a stored job refers to a hash; True also for a job that is not stored."""


class TraceLimits(Struct, frozen=True):
    """The most bytes, files and seconds of age of all traces, and the most bytes of one file of a device."""

    max_bytes: int
    max_files: int
    max_age_s: float
    max_file_bytes: int = 16 << 20


class _StoredFile(Struct, frozen=True):
    path: Path
    size: int
    at: float


class TraceFiles:
    """The files of a directory; a file is named by the job and the hash of its content, so it is written once."""

    def __init__(self, directory: Path, limits: TraceLimits, clock: Callable[[], float] = time.time) -> None:
        self._directory = directory
        self._limits = limits
        self._clock = clock
        self._faults = LogThrottle(_log)
        self._bytes = self._files = 0
        self._is_counted = False
        self._checked_until = 0.0
        self._writing = asyncio.Lock()
        self._receiving: set[Path] = set()
        self._reading = asyncio.Lock()

    async def keep(self, job_id: str, result: Any) -> Any:
        """Write the traces of a result to files; return the result with references to them.

        A trace that cannot be written is lost, with the reason at its place; the result is not.
        """
        if not has_trace(result):
            return result
        async with self._writing:
            return await run_in_thread(partial(self._keep_all, job_id, result), "traces")

    async def read(self, reference: Reference, use: Callable[[bytes], _T]) -> _T:
        """Return what is made of the content of a file, compared with its hash. Raises Refused.

        One file is in memory, however many people look.
        """
        async with self._reading:
            return await asyncio.to_thread(lambda: use(read_file(self._directory, reference)))

    async def draw_curve(self, reference: TraceReference, channel: str) -> str:
        """Return a curve of a trace as SVG; the first channel is `0`. Raises Refused."""
        return await self.read(reference, partial(drawn, channel=channel))

    async def store_file(self, job_id: str, parts: AsyncGenerator[bytes, None]) -> FileReference:
        """Write a file of a result, part by part, and flush it; return the reference to it, or why it is not stored.

        A Refused of `parts` becomes the error of the reference, Unavailable is raised.
        """
        received = self._directory / f".{uuid4().hex}{_RECEIVED}"
        self._receiving.add(received)
        try:
            async with aclosing(parts):
                reference = await self._receive(job_id, received, parts)
            async with self._writing:
                await asyncio.to_thread(self._adopt, received, reference)
        except Refused as refusal:
            self._faults.warning("file not stored", "", job=job_id, reason=refusal.message)
            return FileReference(error=refusal.message[:_LONGEST_ERROR])
        except OSError as error:
            return FileReference(error=self._record_loss(job_id, error))
        finally:
            self._receiving.discard(received)
            # The disk may refuse this too; the sweep removes it then.
            with suppress(OSError):
                received.unlink(missing_ok=True)
        return reference

    async def _receive(self, job_id: str, path: Path, parts: AsyncIterator[bytes]) -> FileReference:
        digest, size, start = sha256(), 0, b""
        most = min(self._limits.max_file_bytes, self._limits.max_bytes)
        await asyncio.to_thread(make_directory, self._directory, _DIRECTORY_MODE)
        with replace_atomically(path, _FILE_MODE) as file:
            async for part in parts:
                size += len(part)
                if size > most:
                    raise Refused("too_large", Text.of("the file has more than {most} bytes", most=most))
                start = start or part[:_LONGEST_START]
                digest.update(part)
                await asyncio.to_thread(file.write, part)
            if not size:
                raise Refused("device", "the file is empty")
            await asyncio.to_thread(sync, file)
        suffix, media_type = next((suffix, kind) for first, suffix, kind in FILE_KINDS if start.startswith(first))
        name = f"{directory_of(job_id)}/{digest.hexdigest()}{suffix}"
        return FileReference(media_type=media_type, file=name, sha256=digest.hexdigest(), size=size)

    def _adopt(self, received: Path, reference: FileReference) -> None:
        """Move a complete file to its place, unless it is there; make room for it before. Raises OSError."""
        path = self._directory / reference.file
        if not path.exists():
            self._make_room(reference.size)
            make_directory(path.parent, _DIRECTORY_MODE)
            received.replace(path)
            self._bytes, self._files = self._bytes + reference.size, self._files + 1

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
        for stored_file in await asyncio.to_thread(lambda: list(self._stored())):
            if not self._checked_until < stored_file.at <= until or stored_file.path.parent.name.startswith("~"):
                continue
            job_id = unquote(stored_file.path.parent.name)
            if not await is_referenced(job_id, stored_file.path.name.partition(".")[0]):
                stored_file.path.unlink(missing_ok=True)
                _log.info("orphaned trace removed", job=job_id, file=stored_file.path.name)
                removed += 1
        self._checked_until = until
        return removed

    def _keep_all(self, job_id: str, result: Any) -> Any:
        return with_references(result, lambda described, trace: self._keep_one(job_id, described, trace))

    def _keep_one(self, job_id: str, described: Mapping[str, Any], trace: ResultTrace) -> TraceReference:
        if trace.points > MOST_POINTS:
            return reference_to(trace, error=f"{trace.points} points, at most {MOST_POINTS} are stored")
        content = encode_trace(trace, {"job": job_id, **described})
        digest = digest_of(content)
        name = f"{directory_of(job_id)}/{digest}{SUFFIX}"
        path = self._directory / name
        try:
            if not path.exists():
                self._write(path, content)
        except OSError as error:
            return reference_to(trace, error=self._record_loss(job_id, error))
        return reference_to(trace, file=name, sha256=digest, size=len(content))

    def _record_loss(self, job_id: str, error: OSError) -> str:
        """Log and return why the disk takes no trace."""
        advice = f"Check the space and the owner of {self._directory}."
        self._faults.warning("trace not stored", "", job=job_id, reason=str(error), advice=advice)
        return error.strerror or type(error).__name__

    def _make_room(self, wanted: int) -> None:
        if not self._is_counted:
            self._sweep()
        if self._bytes + wanted > self._limits.max_bytes or self._files + 1 > self._limits.max_files:
            self._sweep(wanted)

    def _write(self, path: Path, content: bytes) -> None:
        self._make_room(len(content))
        make_directory(path.parent, _DIRECTORY_MODE)
        write_atomically(path, content, _FILE_MODE)
        self._bytes, self._files = self._bytes + len(content), self._files + 1

    def _sweep(self, wanted: int = 0) -> None:
        """Remove files that are too old, then the oldest ones until `wanted` bytes have room. Raises OSError."""
        oldest_first = sorted(self._stored(), key=lambda file: file.at)
        self._bytes, self._files = sum(file.size for file in oldest_first), len(oldest_first)
        self._is_counted = True
        too_old = self._clock() - self._limits.max_age_s
        is_over = self._bytes + wanted > self._limits.max_bytes or self._files + bool(wanted) > self._limits.max_files
        most_bytes = self._limits.max_bytes * _ROOM - wanted
        most_files = self._limits.max_files * _ROOM - bool(wanted)
        for item in oldest_first:
            if item.at >= too_old and not (is_over and (self._bytes > most_bytes or self._files > most_files)):
                break
            item.path.unlink(missing_ok=True)
            self._bytes, self._files = self._bytes - item.size, self._files - 1
        for folder in self._directory.iterdir() if self._directory.is_dir() else ():
            if folder.is_dir() and not any(folder.iterdir()):
                folder.rmdir()

    def _stored(self) -> Iterator[_StoredFile]:
        """Yield the files; remove what a power cut has left of a write."""
        if not self._directory.is_dir():
            return
        for path in (*self._directory.glob(".*"), *self._directory.glob("*/*")):
            try:
                found = path.stat()
            except FileNotFoundError:
                continue
            if path.suffix in {".partial", _RECEIVED}:
                if path not in self._receiving and found.st_mtime < self._clock() - _ORPHAN_SECONDS:
                    path.unlink(missing_ok=True)
            elif path.name.endswith(_SUFFIXES):
                yield _StoredFile(path, found.st_size, found.st_mtime)


def read_file(directory: Path, reference: Reference) -> bytes:
    """Return the content of a file after its hash was compared. Raises Refused."""
    with _opened(directory, reference.file) as file:
        content = file.read()
    if digest_of(content) != reference.sha256:
        reason = Text.of("the content of {file} does not match its hash", file=reference.file)
        raise Refused("damaged", reason, "Check the disk, and take another copy.")
    return content


def read_chunk(directory: Path, file: str, offset: int, most: int) -> tuple[bytes, int]:
    """Return at most `most` bytes of a file from an offset on, and the size of the file. Raises Refused."""
    with _opened(directory, file) as content:
        size = os.fstat(content.fileno()).st_size
        content.seek(min(offset, size))
        return content.read(most), size


@contextmanager
def _opened(directory: Path, file: str) -> Iterator[BinaryIO]:
    if not _FILE.fullmatch(file):
        raise Refused(
            "parameters", Text.of("{file!r} does not name a trace", file=file), "Take `file` of the reference."
        )
    try:
        with (directory / file).open("rb") as content:
            yield content
    except FileNotFoundError:
        reason = Text.of("the trace {file} is not stored any more", file=file)
        raise Refused("unknown_trace", reason, "[traces] says how long files are kept.") from None
    except OSError as error:
        reason = Text.of("cannot read {directory}: {reason}", directory=directory / file, reason=error.strerror)
        raise Refused("unreadable", reason, "Check its owner, and the disk.") from error


def directory_of(job_id: str) -> str:
    """Return the directory of a job: its id with other characters encoded, or the hash of a long one."""
    name = quote(job_id, safe="").replace(".", "%2E").replace("~", "%7E")
    return name if 0 < len(name) <= _LONGEST_NAME else f"~{sha256(job_id.encode()).hexdigest()}"
