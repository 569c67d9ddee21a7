"""Traces are off unless configured; the files of a removed job are kept until their retention ends."""

from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, cast

from edge.config import Settings
from edge.features.traces.service import is_referenced, open_traces
from edge.store.client import Store


async def test_traces_are_dropped_unless_a_directory_is_named() -> None:
    async with AsyncExitStack() as stack:
        core = cast("Any", SimpleNamespace(settings=Settings()))
        assert (await open_traces(stack, core)).port is None


async def test_trace_of_a_removed_job_counts_as_referenced(store: Store) -> None:
    assert await is_referenced(store, "gone", "a" * 64)
