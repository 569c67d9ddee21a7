"""A data node that copies the data of its primary has closed its append-only file only for that time."""

import asyncio
import contextlib
import shutil
from pathlib import Path

from edge.foundation.errors import EdgeError
from edge.store.observer import open_observer
from edge.store.store_state import ProblemKind, find_problems
from tests.store.sentinel_line import open_line, until

_SLOW = "key-load-delay 500\nloading-process-events-interval-bytes 1024\n"


async def test_replica_that_copies_its_data_is_not_reported_without_file(tmp_path: Path, unique: str) -> None:
    """The alarm `gateway.store_without_file` was raised for as long as a healed primary copied its data."""
    async with open_line(tmp_path, replica=_SLOW) as line:
        primary, replica = line.nodes
        for at in range(0, 4000, 500):
            await primary.call("MSET", *(text for key in range(at, at + 500) for text in (f"k{key}", "x")))
        await replica.kill()
        for path in replica.directory.glob("appendonly*"):
            shutil.rmtree(path)
        (replica.directory / "dump.rdb").unlink(missing_ok=True)
        kinds: set[ProblemKind] = set()
        was_closed = False
        starting = asyncio.create_task(replica.start())
        async with open_observer(line.settings(unique)) as observer:

            async def is_linked() -> bool:
                nonlocal was_closed
                with contextlib.suppress(EdgeError):
                    reply = await replica.call("INFO", "persistence")
                    was_closed |= "aof_enabled:0" in str(reply)
                state = await observer.read()
                kinds.update(problem.kind for problem in find_problems(state))
                return any(node.is_linked for node in state.replicas)

            await until(is_linked)
        await starting
    assert was_closed
    assert ProblemKind.NO_AOF not in kinds
