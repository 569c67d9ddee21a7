"""Opens the OPC UA server with what it shows of the gateway."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from functools import partial

from edge.access.mode import ModeRequest, SwitchOn, switch_mode
from edge.access.sessions import show_sessions
from edge.app.features import equipment_kinds, opcua_parts
from edge.app.interface import RETRY_S, open_interface
from edge.app.parts import GatewayParts, Works, open_users
from edge.foundation.errors import unwrap_group
from edge.foundation.task_group import TaskGroup
from edge.model.audit import AuditRecord
from edge.model.job_state import JobState
from edge.model.plant import Maintenance
from edge.opcua.access import Caller
from edge.station.active_runs import LockHolders
from edge.station.decision import LoadedJob
from edge.station.intervene import intervene, release
from edge.station.response import ResponseProvider
from edge.station.retention import Deliveries
from edge.uaserver.charts import show_charts
from edge.uaserver.job_feed import show_jobs, show_work_masters
from edge.uaserver.methods import Services
from edge.uaserver.server import UaServer, open_server
from edge.uaserver.space import MachineDescription
from edge.uaserver.view import GatewayView, MaintenanceView, service_level


class OpcuaService:
    """The OPC UA server of the gateway; `server` is None while it cannot listen."""

    def __init__(self, parts: GatewayParts, works: Works, retry_s: tuple[float, float] = RETRY_S) -> None:
        self.server: UaServer | None = None
        self._parts = parts
        self._works = works
        self._retry_s = retry_s

    @property
    def endpoint(self) -> str:
        """The address of the server; empty while it cannot listen."""
        return self.server.endpoint if self.server else ""

    @property
    def sessions(self) -> int:
        """The number of OPC UA sessions."""
        return 0 if self.server is None else self.server.sessions

    async def open(self, stack: contextlib.AsyncExitStack) -> None:
        """Open the server on `stack`; when it is unavailable, retry in the background. Raises SettingsError."""
        problems = self._parts.health.interface_problems
        defects = self._parts.store.defects
        await open_interface(stack, "OPC UA server", self._serve, problems, defects, self._retry_s)

    @contextlib.asynccontextmanager
    async def _serve(self) -> AsyncIterator[str]:
        with unwrap_group():
            async with contextlib.AsyncExitStack() as stack:
                self.server = await _open_server(stack, self._parts, self._works)
                yield self.server.endpoint


async def _open_server(stack: contextlib.AsyncExitStack, parts: GatewayParts, works: Works) -> UaServer:
    settings, store, scopes, jobs = parts.settings, parts.store, parts.scopes, works.jobs
    most = settings.northbound.max_downloadable_job_orders
    tasks = await stack.enter_async_context(TaskGroup())
    equipment = {name: section.type_ids for name, section in settings.southbound.items()}
    services = Services(
        jobs,
        ResponseProvider(store, Deliveries(store, parts.clock, parts.retention).record_request),
        partial(intervene, jobs.runs, dedupe_ms=jobs.dedupe_ms),
        partial(release, store, equipment, dedupe_ms=jobs.dedupe_ms),
        partial(switch_for_client, parts),
        scopes,
    )
    name = settings.gateway.name
    server = await stack.enter_async_context(
        open_server(
            settings.opcua,
            name,
            [MachineDescription(scope, most) for scope in scopes],
            services,
            tasks,
            equipment=tuple(equipment),
            trail=parts.trail,
            users=works.users or open_users(parts),
            parts=opcua_parts(parts),
            kinds={name: kind.number for name, kind in equipment_kinds().items()},
            shares_certificate=bool(settings.certificate_hosts),
        )
    )
    await stack.enter_async_context(show_sessions(store, partial(server.live_sessions, name)))

    async def refresh(scope: str) -> None:
        await show_work_masters(store, server, scope)

    async def show_gateway() -> None:
        memory_usage = parts.health.memory
        devices = {device.name: device for device in parts.watch.health}
        await server.gateway.show(
            GatewayView(parts.health.line, memory_usage.used, memory_usage.limit, memory_usage.is_nearly_full, devices)
        )

    works.settings.listeners.append(refresh)
    parts.watch.listeners.append(show_gateway)
    await _show_jobs(stack, parts, server)
    for part in server.parts:
        for task, work in part.works.items():
            await parts.keep_running(stack, task, partial(work, server))
    return server


async def _show_jobs(stack: contextlib.AsyncExitStack, parts: GatewayParts, server: UaServer) -> None:
    await parts.keep_running(stack, "OPC UA lists", partial(show_jobs, parts.store, server, parts.scopes))
    await parts.keep_running(stack, "OPC UA maintenance", partial(show_maintenance, parts, server))
    holders = LockHolders(parts.store, parts.active_runs)
    await parts.keep_running(stack, "OPC UA lock holders", holders.follow)
    show_charts(parts.active_runs, server.charts, parts.clock, holders, parts.runs.mirrors)


async def switch_for_client(core: GatewayParts, request: ModeRequest, caller: Caller) -> None:
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


async def show_maintenance(core: GatewayParts, server: UaServer) -> None:
    """Show the mode and the state of the machines to OPC UA clients, now and after each change, until cancelled."""
    changed = asyncio.Event()
    changed.set()
    maintenance_view: MaintenanceView | None = None

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
            if (view := MaintenanceView(mode, core.mode.message, executing, level)) != maintenance_view:
                await server.maintenance.show(view)
                maintenance_view = view
    finally:
        core.health.listeners.remove(changed.set)
        core.mode.listeners.remove(note_mode)
        core.active_runs.listeners.remove(note_run)
