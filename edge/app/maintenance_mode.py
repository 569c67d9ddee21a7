"""Connects the maintenance mode and locks with the calls of the MES, and ends the mode of an upgrade."""

from collections.abc import Mapping

from edge.access.mode import SwitchOff, switch_mode
from edge.app.parts import GatewayParts
from edge.model.audit import AuditRecord
from edge.model.job_state import JobState
from edge.model.plant import UPGRADE
from edge.northbound.gateway_calls import LockCalls, MaintenanceCalls
from edge.northbound.reply import Handler
from edge.store import mode


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
