"""Connects the maintenance mode with the interfaces that switch and show it."""

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING

from edge.access.mode import ModeRequest, SwitchOff, SwitchOn, switch_mode
from edge.app.parts import GatewayParts
from edge.model.audit import AuditRecord
from edge.model.job_state import JobState
from edge.model.plant import UPGRADE, Maintenance
from edge.northbound.gateway_calls import LockCalls, MaintenanceCalls
from edge.northbound.reply import Handler
from edge.station.decision import LoadedJob
from edge.store import mode
from edge.uaserver.view import MaintenanceView, service_level

if TYPE_CHECKING:
    from edge.opcua.access import Caller
    from edge.uaserver.server import UaServer


async def end_upgrade(core: GatewayParts) -> None:
    """Switch off the mode that an upgrade of the package switched on for this gateway. Raises Unavailable."""
    name = core.trail.instance
    own = (await mode.load(core.store, name)).gateway
    if own is None or own.by != UPGRADE:
        return
    record = AuditRecord(
        at=core.trail.clock(),
        kind="cli.call",
        instance=name,
        user=UPGRADE,
        action="maintenance off",
        subject=name,
        status="Good",
    )
    await switch_mode(core.store, name, SwitchOff(), record, core.trail.clock, core.trail.keep)
    core.trail.copy(record)
    await core.mode.refresh()


def operation_calls(core: GatewayParts) -> Mapping[str, Handler]:
    """Return the calls of operations that the MES and sidecars may make, by their type."""
    return {**_maintenance_calls(core).table, **LockCalls(core.store, core.trail).table}


def _maintenance_calls(core: GatewayParts) -> MaintenanceCalls:

    def running() -> int:
        return sum(loaded_job.job.status.state is JobState.RUNNING for loaded_job in core.active_runs.loaded.values())

    dedupe_ms = core.settings.retention.dedupe * 1000
    return MaintenanceCalls(core.store, core.trail, core.mode.refresh, running, dedupe_ms)


async def switch_for_client(core: GatewayParts, request: ModeRequest, caller: "Caller") -> None:
    """Switch the mode of this gateway for an OPC UA client. Raises Refused, and Unavailable without the store."""
    is_on = isinstance(request, SwitchOn)
    record = AuditRecord(
        at=core.trail.clock(),
        kind="opcua.call",
        instance=core.trail.instance,
        user=caller.name or "anonymous",
        role=caller.role.name.lower(),
        application=caller.application,
        address=caller.address,
        action=f"maintenance {'on' if is_on else 'off'}",
        subject=core.trail.instance,
        comment=request.message if isinstance(request, SwitchOn) else "",
        status="Good",
    )
    await switch_mode(core.store, core.trail.instance, request, record, core.trail.clock, core.trail.keep)
    await core.mode.refresh()


async def show_maintenance(core: GatewayParts, server: "UaServer") -> None:
    """Show the mode and the state of the machines to OPC UA clients, now and after each change, until cancelled."""
    changed = asyncio.Event()
    changed.set()
    shown: MaintenanceView | None = None

    def note_mode(_: Maintenance | None) -> None:
        changed.set()

    def note_run(before: LoadedJob | None, now: LoadedJob | None) -> None:
        # A step of a run leaves the state of its job as it is.
        if before is None or now is None or before.job.status != now.job.status:
            changed.set()

    core.mode.listeners.append(note_mode)
    core.active_runs.listeners.append(note_run)
    core.health.listeners.append(changed.set)
    try:
        while True:
            await changed.wait()
            changed.clear()
            running = (loaded_job.job for loaded_job in core.active_runs.loaded.values())
            executing = frozenset(job.scope for job in running if job.status.state is JobState.RUNNING)
            # Most changes of a run change none of this.
            mode, health = core.mode.in_force, core.health
            level = service_level(mode, has_store=health.has_store, is_degraded=bool(health.problem_line))
            if (view := MaintenanceView(mode, core.mode.message, executing, level)) != shown:
                await server.maintenance.show(view)
                shown = view
    finally:
        core.health.listeners.remove(changed.set)
        core.mode.listeners.remove(note_mode)
        core.active_runs.listeners.remove(note_run)
