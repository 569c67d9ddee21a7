"""Records of a failover are in the audit trail of the new primary, once each."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

from edge.access.audit_trail import AuditTrail, CarriedRecords, find_faults, open_trail
from edge.config import RedisSettings
from edge.foundation.errors import Unavailable
from edge.model.audit import AuditRecord
from edge.store import audit
from edge.store.client import Store
from edge.store.open_store import open_store
from tests.conftest import WaitUntil
from tests.free_ports import free_port
from tests.store.sentinel_line import open_line

_KEEP = 10_000


def _record(action: str) -> AuditRecord:
    return AuditRecord(at=1, kind="cli.call", instance="gw-1", user="anna", action=action)


@contextlib.asynccontextmanager
async def _trail(settings: RedisSettings, carried: CarriedRecords) -> AsyncIterator[tuple[Store, AuditTrail]]:
    """Open the store, which may take until the end of a failover, and its trail."""
    async with contextlib.AsyncExitStack() as stack:
        async with asyncio.timeout(60):
            while True:
                with contextlib.suppress(Unavailable):
                    store = await stack.enter_async_context(open_store(settings, "gw-1"))
                    break
                await asyncio.sleep(0.1)
        yield store, await stack.enter_async_context(open_trail(store, "gw-1", _KEEP, lambda: 1, carried))


async def _actions(settings: RedisSettings, carried: CarriedRecords, wait_until: WaitUntil) -> list[str]:
    """Return the actions in the trail of the next store, which has no faults."""
    async with _trail(settings, carried) as (store, trail):
        await wait_until(lambda: not trail.waiting)
        records = [record async for record in audit.read_all(store)]
        assert list(find_faults(records, await audit.load_head(store), _KEEP)) == []
    return [json.loads(record.text)["action"] for record in records]


async def test_records_of_a_failover_are_written_to_the_new_primary(
    tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    """They were dropped with "audit records lost", and no record said so."""
    carried: CarriedRecords = {}
    async with open_line(tmp_path) as line:
        async with _trail(line.settings(unique), carried) as (store, trail):
            trail.record(_record("before"))
            await wait_until(lambda: not trail.waiting)
            assert await line.nodes[0].call("WAIT", 1, 5000) == 1
            await line.fail_over()
            await store.over.wait()
            for number in range(3):
                trail.record(_record(f"during {number}"))
        assert await _actions(line.settings(unique), carried, wait_until) == [
            "before",
            "during 0",
            "during 1",
            "during 2",
        ]


async def test_record_that_only_the_former_primary_holds_is_written_again(
    tmp_path: Path, unique: str, wait_until: WaitUntil
) -> None:
    carried: CarriedRecords = {}
    async with open_line(tmp_path) as line:
        async with _trail(line.settings(unique), carried) as (store, trail):
            trail.record(_record("everywhere"))
            await wait_until(lambda: not trail.waiting)
            assert await line.nodes[0].call("WAIT", 1, 5000) == 1
            await line.nodes[1].call("REPLICAOF", "127.0.0.1", free_port())
            trail.record(_record("at the former primary"))
            await wait_until(lambda: not trail.waiting)
            await line.nodes[0].kill()
            await store.over.wait()
        assert await _actions(line.settings(unique), carried, wait_until) == ["everywhere", "at the former primary"]
