"""Opens the directory of traces if it is configured, and keeps it swept."""

import contextlib
from functools import partial
from pathlib import Path

import msgspec

from edge.app.feature import Opened
from edge.app.parts import GatewayParts
from edge.features.traces.calls import TraceCalls
from edge.features.traces.files import TraceFiles, TraceLimits
from edge.features.traces.settings import TracesSettings
from edge.foundation.errors import Refused
from edge.station.stored_job import load
from edge.store.client import Store


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
        stored = await load(store, job_id)
    except Refused:
        return True
    return digest.encode() in msgspec.json.encode((stored.run, stored.response))
