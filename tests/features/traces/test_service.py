"""Traces are off unless configured; the files of a removed job are kept until their retention ends."""

import base64
from contextlib import AsyncExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from edge.config import Settings
from edge.features.traces.files import TraceFiles, TraceLimits, read_file
from edge.features.traces.service import MOST_BYTES, TraceCalls, is_referenced, open_traces
from edge.foundation.errors import Refused
from edge.model.cloudevent import CloudEvent
from edge.ports.result_trace import stored_in
from edge.store.client import Store


async def test_traces_are_dropped_unless_a_directory_is_named() -> None:
    async with AsyncExitStack() as stack:
        core = cast("Any", SimpleNamespace(settings=Settings()))
        assert (await open_traces(stack, core)).port is None


async def test_trace_of_a_removed_job_counts_as_referenced(store: Store) -> None:
    assert await is_referenced(store, "gone", "a" * 64)


def event(data: Any = None) -> CloudEvent:
    return CloudEvent(id="1", source="/mes", type="traces", data=data)


async def test_file_is_read_in_parts(tmp_path: Path) -> None:
    curve = {"channels": [{"name": "Torque", "values": [n**0.5 * 7.1 for n in range(60_000)]}]}
    kept = await TraceFiles(tmp_path, TraceLimits(1 << 24, 10, 60)).keep("J1", {"trace": curve})
    (reference,) = stored_in(kept)
    calls, content = TraceCalls(str(tmp_path)), b""
    assert reference.size > MOST_BYTES
    while len(content) < reference.size:
        answer = await calls.read(event({"File": reference.file, "Offset": len(content)}), "topic")
        content += base64.b64decode(answer.data)
        assert answer.size == reference.size
    assert content == read_file(tmp_path, reference)


@pytest.mark.parametrize(
    "data", [None, {"File": "../../etc/passwd"}, {"File": f"J1/{'a' * 64}.json.gz"}, {"File": "J1/x", "Offset": -1}]
)
async def test_invalid_trace_call_is_refused(tmp_path: Path, data: Any) -> None:
    with pytest.raises(Refused):
        await TraceCalls(str(tmp_path)).read(event(data), "topic")


async def test_gateway_without_traces_refuses_the_call() -> None:
    with pytest.raises(Refused, match="stores no traces"):
        await TraceCalls("").read(event({"File": f"J1/{'a' * 64}.json.gz"}), "topic")
