"""Others stay fast next to the largest loads: history of a large tag, large calls, browsing, many sessions."""

import asyncio
import contextlib
import gc
import json
import logging
import os
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TypeAlias

import msgspec
import pytest

from edge.features.telemetry.history.day_files import in_chunks
from edge.features.telemetry.opcua.tag_history import TagHistory
from edge.foundation.task_group import background_task
from edge.ports.batch import encode_line
from edge.ports.sample_lines import Sample
from edge.store import stream_of_samples as tags
from edge.store.client import Store
from tests.conftest import WaitUntil
from tests.features.telemetry.history.written import append_samples
from tests.features.telemetry.opcua.alarm_plant import alarm_server
from tests.features.telemetry.opcua.history_client import SAMPLES, START
from tests.opcua.test_time_slices_under_attack import LoopWatch
from tests.uaserver.running import SETTINGS

pytestmark = [pytest.mark.long, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[4]
TEXT = 2_000
PART_S = 0.020
"""Processor time of the event loop in one pass."""
SECONDS = float(os.environ.get("EDGE_LOAD_SECONDS", "8"))
Load: TypeAlias = tuple[str, int]
"""A kind of requests, and the number of sessions that send them."""
LOADS: dict[str, tuple[Load, ...]] = {
    "history": (("history", 8),),
    "calls": (("calls", 12),),
    "browse": (("browse", 4),),
    "sessions": (("reads", 50),),
    "everything": (("history", 8), ("calls", 12), ("browse", 4), ("reads", 50)),
}


@contextlib.asynccontextmanager
async def load(endpoint: str, kind: str, sessions: int) -> AsyncIterator[asyncio.subprocess.Process]:
    """Run clients in a process of their own."""
    process = await asyncio.create_subprocess_exec(
        "nice",
        *(sys.executable, "-m", "tests.features.telemetry.opcua.legal_load", endpoint, kind, str(sessions)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        cwd=ROOT,
    )
    try:
        assert process.stdout
        assert await process.stdout.readline() == b"working\n"
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def delays_of_another(endpoint: str) -> dict[str, float]:
    """Return the percentiles of the reads of a client of another vendor, in milliseconds."""
    process = await asyncio.create_subprocess_exec(
        *("node", ROOT / "tests" / "outside" / "opcua_client.js", endpoint, "delays", str(SECONDS)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={**os.environ, "NODE_PATH": str(ROOT / ".node" / "node_modules")},
    )
    out, _ = await process.communicate()
    found: dict[str, float] = json.loads(out)
    return found


@pytest.mark.parametrize("loads", LOADS)
async def test_no_legal_load_holds_the_loop_longer_than_20_ms(
    store: Store, tmp_path: Path, wait_until: WaitUntil, loads: str
) -> None:
    texts = "x" * TEXT
    samples = [Sample(START + number * 1000, "wrench.temp", f"{number} {texts}") for number in range(SAMPLES)]
    for chunk in in_chunks(samples):
        append_samples(tmp_path, chunk, 1 << 30)
    await store.commit(tags.save_last(store.keys, {"wrench.temp": encode_line(samples[-1])}))
    wide = msgspec.structs.replace(SETTINGS, max_connections=100, max_sessions=100)
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(alarm_server(store, history=TagHistory(tmp_path), settings=wide))
        await wait_until(lambda: server.alarms.tags.has("wrench.temp"))
        quiet = await delays_of_another(server.endpoint)
        processes = [await stack.enter_async_context(load(server.endpoint, *of_kind)) for of_kind in LOADS[loads]]
        gc.collect()
        gc.freeze()
        watch = LoopWatch(store)
        async with background_task(watch.tick(), "ticks"):
            started = time.monotonic()
            delays = await delays_of_another(server.endpoint)
            took = time.monotonic() - started
        gc.unfreeze()
        for process in processes:
            assert process.stdin
            process.stdin.close()
        counts = [(await process.stdout.readline()).strip().decode() for process in processes if process.stdout]
    held = sorted((seconds for seconds, _ in watch.held), reverse=True)
    figures = {
        "load": loads,
        "requests": counts,
        "seconds": round(took, 1),
        "longest parts ms": [round(1000 * seconds, 1) for seconds in held[:6]],
        "quiet": quiet,
        "under load": delays,
    }
    logging.getLogger(__name__).info("%s", figures)
    assert held[0] < PART_S, figures
