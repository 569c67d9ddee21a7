"""What the HTTP API and the pages show of the results of a job and the files of their traces, and how it is read."""

import asyncio
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from edge.features.page.plot import PlotPoint, plot_svg
from edge.features.traces.files import read_file
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.ports.result_trace import (
    FileReference,
    Reference,
    ResultTrace,
    TraceChannel,
    TraceReference,
    stored_in,
)
from edge.station.public_result import PublicResult, attempts_of, public_results
from edge.station.stored_job import StoredJob, load
from edge.store.client import Store


class ResultList(Struct, frozen=True, kw_only=True):
    """The newest results of a job, in the order of their ends."""

    job_order_id: str
    results: tuple[PublicResult, ...]


MOST_RESULTS: Final = 200
_MOST_TRACE_BYTES: Final = 64 * 1024 * 1024
_LARGEST_RESULT: Final = 65_536
"""In bytes of JSON; the size of a larger one stands for it."""
_MOST_PLOTTED: Final = 1500


async def job_results(store: Store, job_id: str) -> ResultList:
    """Return the results of a job. Raises Refused for an unknown one."""
    return results_of(await load(store, job_id))


def results_of(stored: StoredJob, most: int = MOST_RESULTS) -> ResultList:
    """Return the results of a job, the newest ones when there are many."""
    return ResultList(job_order_id=stored.job.job_id, results=public_results(stored, most, _LARGEST_RESULT))


class TraceReader:
    """Reads the traces and files in a directory: one in memory, however many people look."""

    def __init__(self, store: Store, directory: Path) -> None:
        self._store = store
        self._directory = directory
        self._reading = asyncio.Lock()

    async def file(self, job_id: str, digest: str) -> bytes:
        """Return the file of a trace of a job, compared with its hash. Raises Refused."""
        return await self._read(_reference(await load(self._store, job_id), digest, TraceReference))

    async def offered_file(self, job_id: str, digest: str) -> tuple[bytes, str]:
        """Return a file that equipment offered with a result, compared with its hash, and its name. Raises Refused."""
        reference = _reference(await load(self._store, job_id), digest, FileReference)
        return await self._read(reference), reference.file.rpartition("/")[2]

    async def curve_svg(self, job_id: str, digest: str, channel: int) -> str:
        """Return one curve of a trace as SVG. Raises Refused for an unknown one."""
        content = await self.file(job_id, digest)
        async with self._reading:
            return await asyncio.to_thread(_drawn, content, channel)

    async def _read(self, reference: Reference) -> bytes:
        async with self._reading:
            return await asyncio.to_thread(read_file, self._directory, reference)


def _reference(stored: StoredJob, digest: str, kind: type[Reference]) -> Reference:
    results = (attempt.result for attempt in attempts_of(stored))
    found = (
        kept_reference for result in results for kept_reference in stored_in(result) if kept_reference.sha256 == digest
    )
    if (
        reference := next((kept_reference for kept_reference in found if isinstance(kept_reference, kind)), None)
    ) is None:
        job_id = stored.job.job_id
        is_trace = kind is TraceReference
        reason = (
            Text.of("job {job_id!r} has no trace {digest!r}.", job_id=job_id, digest=digest)
            if is_trace
            else Text.of("job {job_id!r} has no file {digest!r}.", job_id=job_id, digest=digest)
        )
        raise Refused("unknown_trace", reason, "Look at the results of the job.")
    return reference


def _drawn(content: bytes, number: int) -> str:
    channels = _channels(content)
    if not 0 <= number < len(channels):
        raise Refused(
            "unknown_trace",
            Text.of("the trace has no curve {number}.", number=number),
            Text.of("It has {count}.", count=len(channels)),
        )
    channel = channels[number]
    title = " ".join(filter(None, (channel.step, channel.name, f"[{channel.unit}]" if channel.unit else "")))
    interval, offset = channel.interval_ms or 1.0, channel.offset_ms or 0.0
    points = [PlotPoint(offset + at * interval, value) for at, value in thinned(channel.values, _MOST_PLOTTED)]
    return plot_svg(title, points, is_time=False)


def _channels(content: bytes) -> tuple[TraceChannel, ...]:
    try:
        # A file that another program wrote must not take the memory of the gateway.
        unpacked = zlib.decompressobj(zlib.MAX_WBITS | 16).decompress(content, _MOST_TRACE_BYTES)
        return msgspec.json.decode(unpacked, type=ResultTrace).channels
    except (zlib.error, msgspec.DecodeError) as error:
        raise Refused(
            "unreadable", Text.of("the trace cannot be read: {reason}.", reason=error), "Take another copy."
        ) from None


def thinned(values: Sequence[float], most: int) -> Iterable[tuple[int, float]]:
    """Return values with their numbers, at most `most`: of each section its least and its greatest."""
    if len(values) <= most:
        return list(enumerate(values))
    size = -(-len(values) * 2 // most)
    kept: list[tuple[int, float]] = []
    for start in range(0, len(values), size):
        section = range(start, min(start + size, len(values)))
        ends = {min(section, key=values.__getitem__), max(section, key=values.__getitem__)}
        kept += [(at, values[at]) for at in sorted(ends)]
    return kept
