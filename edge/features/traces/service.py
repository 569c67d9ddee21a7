"""Opens the directory of traces if it is configured, and keeps it swept."""

import asyncio
import base64
import contextlib
from collections.abc import Mapping
from functools import partial
from pathlib import Path

import msgspec

from edge.app.feature import Opened
from edge.app.parts import GatewayParts
from edge.features.traces.files import TraceFiles, TraceLimits, read_chunk
from edge.features.traces.settings import TracesSettings
from edge.foundation.errors import Refused
from edge.foundation.text import Text
from edge.model.cloudevent import CloudEvent
from edge.model.event_types import TRACES_METHOD_TYPE
from edge.model.isa95 import Payload, ReturnStatus
from edge.northbound.reply import Handler, arguments_of, replying
from edge.station.stored_job import load
from edge.store.client import Store


class TraceCall(Payload, frozen=True, kw_only=True):
    """Which file, as the reference in a result names it, and from which byte on.

    Example: {"Offset": 196608, "File":
     "ORDER-1001/1da231f58b0d03219aa56afa29948ce566c455bb89e9047075e16291d6f8f74a.json.gz"}
    """

    file: str
    offset: int = 0


class TraceAnswer(Payload, frozen=True, kw_only=True):
    """A part of the file in base64, at most 192 KiB; `size` is that of the whole file.

    Example: {"ReturnStatus": 1, "Size": 5, "Offset": 0, "Data": "aGVsbG8=", "File":
     "ORDER-1001/1da231f58b0d03219aa56afa29948ce566c455bb89e9047075e16291d6f8f74a.json.gz"}
    """

    return_status: ReturnStatus
    file: str
    size: int
    offset: int
    data: str


MOST_BYTES = 192 * 1024
"""The most bytes of an answer: 256 KiB of base64, as the largest result."""


class TraceCalls:
    """The traces of a directory as the MES sees them."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        # One file in memory, however many calls come at once.
        self._reading = asyncio.Lock()

    @property
    def table(self) -> Mapping[str, Handler]:
        """Return the calls by their CloudEvents type."""
        return {TRACES_METHOD_TYPE.format("Read"): replying(self.read)}

    async def read(self, event: CloudEvent, _origin: str) -> TraceAnswer:
        """Return a part of a file. Raises Refused for wrong arguments, and for a file that is not stored."""
        call = _arguments(event)
        if not self._directory:
            raise Refused("unknown_trace", "this gateway stores no traces", "Set [traces] directory.")
        async with self._reading:
            data, size = await asyncio.to_thread(read_chunk, Path(self._directory), call.file, call.offset, MOST_BYTES)
        return TraceAnswer(
            return_status=ReturnStatus.NO_ERROR,
            file=call.file,
            size=size,
            offset=call.offset,
            data=base64.b64encode(data).decode(),
        )


def _arguments(event: CloudEvent) -> TraceCall:
    call = arguments_of(event, TraceCall, "Send File and Offset.", {})
    if call.offset < 0:
        raise Refused(
            "invalid_payload",
            Text.of("Offset {offset} is negative", offset=call.offset),
            "Send the number of bytes that you have.",
        )
    return call


async def open_traces(stack: contextlib.AsyncExitStack, core: GatewayParts) -> Opened:
    """Store the traces and files of results, and let the MES read them; they are swept until the stack closes."""
    settings = core.settings.section(TracesSettings)
    calls = TraceCalls(settings.directory).table
    if not settings.directory:
        return Opened(calls=calls)
    limits = TraceLimits(settings.max_bytes, settings.max_files, settings.max_age, settings.max_file_bytes)
    files = TraceFiles(Path(settings.directory), limits)
    await core.keep_running(stack, "traces", partial(files.run, partial(is_referenced, core.store)))
    return Opened(port=files, calls=calls)


async def is_referenced(store: Store, job_id: str, digest: str) -> bool:
    """Return whether a job refers to the trace with this hash; True for a job that is not in the store.

    Raises Unavailable without the store.
    """
    try:
        stored_job = await load(store, job_id)
    except Refused:
        return True
    return digest.encode() in msgspec.json.encode((stored_job.run, stored_job.response))
