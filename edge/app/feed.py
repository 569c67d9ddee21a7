"""Keeps the OPC UA lists at what the store holds."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import structlog

from edge.errors import Unavailable
from edge.model.isa95 import JobOrderAndState
from edge.model.job_state import state_entries
from edge.store import changes, jobs, resources
from edge.store.client import Store

if TYPE_CHECKING:
    from edge.uaserver.server import UaServer

logger = structlog.get_logger(__name__)

_RETRY_S = 1.0


async def show_jobs(store: Store, server: "UaServer", scopes: Sequence[str]) -> None:
    """Show every job of the scopes and follow its changes, until cancelled; a store that is gone is waited for."""
    shown: set[tuple[str, str]] = set()
    while True:
        try:
            # The positions are taken first: what happens while the jobs are read is then followed, not missed.
            positions = await changes.latest(store, scopes)
            for scope in scopes:
                await show_work_masters(store, server, scope)
                shown |= {(scope, job_id) for job_id in await jobs.list_ids(store, scope)}
            # With those that were shown before the store was gone, and went with it.
            for scope, job_id in tuple(shown):
                await _show(store, server, shown, scope, job_id)
            async for change in changes.follow(store, positions):
                await _show(store, server, shown, change.scope, change.job_order_id)
        except Unavailable as error:
            logger.warning("OPC UA lists wait for the store", reason=error.message)
            await asyncio.sleep(_RETRY_S)


async def show_work_masters(store: Store, server: "UaServer", scope: str) -> None:
    """Show the work masters of a scope as they are now."""
    server.work_masters(scope, await resources.load_work_masters(store, scope))


async def _show(store: Store, server: "UaServer", shown: set[tuple[str, str]], scope: str, job_id: str) -> None:
    job = await jobs.load(store, job_id)
    if job is None:
        server.hide(scope, job_id)
        shown.discard((scope, job_id))
        return
    shown.add((scope, job_id))
    entry = JobOrderAndState(job_order=job.order, state=state_entries(job.status))
    server.show(scope, entry, await jobs.load_response(store, job))
