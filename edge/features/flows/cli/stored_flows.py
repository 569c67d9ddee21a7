"""Opens the flows of the store for a command, and reads their status."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

from edge.cli.terminal.operator import recorded
from edge.cli.terminal.output import print_text
from edge.cli.terminal.store_access import StoreAccess, open_access
from edge.features.flows.cycle_service import FlowService, flow_status
from edge.features.flows.plan import Plans
from edge.features.flows.plugins import load_checked_kinds
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.settings import FlowsSettings
from edge.station.clock import store_clock

_T = TypeVar("_T")


def run_with_flows(settings_file: Path | None, work: Callable[[FlowService], Awaitable[_T]]) -> _T:
    """Run work with the flows of the store."""

    async def run() -> _T:
        async with open_flows(settings_file) as service:
            return await work(service)

    return asyncio.run(run())


def change_flow(
    settings_file: Path | None,
    action: str,
    flow: str,
    work: Callable[[FlowService], Awaitable[_T]],
    reason: str = "",
) -> _T:
    """Run work that changes a flow, with a record in the audit trail."""

    async def run() -> _T:
        async with open_access(settings_file) as at, _served(at) as service, recorded(at, action, flow, reason):
            return await work(service)

    return asyncio.run(run())


@asynccontextmanager
async def open_flows(settings_file: Path | None) -> AsyncIterator[FlowService]:
    """Open the flows of the store of the settings."""
    async with open_access(settings_file) as at, _served(at) as service:
        yield service


@asynccontextmanager
async def _served(at: StoreAccess) -> AsyncIterator[FlowService]:

    site = await load_checked_kinds(at.settings.section(FlowsSettings).nodes)
    for origin, fault in site.faults.items():
        print_text(f"{origin}: {fault}", err=True)
    yield FlowService(RedisFlowState(at.store), Plans(site.kinds), await store_clock(at.store))


async def read_status(service: FlowService, flow_id: str, number: int | None) -> dict[str, Any]:
    """Return the comprehensive status of a flow with one of its cycles, without a number the last."""
    flow = await service.load(flow_id)
    record = await service.load_cycle(flow, number)
    progress = await service.progress(record.cycle) if record else {}
    return flow_status(flow, service.plan_of(flow), record, progress)
