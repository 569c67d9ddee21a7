"""Opens the OPC UA server with what it shows of the gateway."""

import contextlib
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edge.access.login import Users
from edge.app.features import opcua_parts
from edge.app.interface import RETRY_S, open_interface
from edge.app.maintenance_mode import show_maintenance, switch_for_client
from edge.app.parts import GatewayParts, Works
from edge.foundation.errors import unwrap_group
from edge.foundation.task_group import TaskGroup
from edge.model.user import Role
from edge.station.active_runs import LockHolders
from edge.station.intervene import intervene, release
from edge.station.response import ResponseProvider
from edge.station.retention import Deliveries
from edge.uaserver.view import GatewayView

if TYPE_CHECKING:
    from edge.uaserver.server import UaServer


class OpcuaService:
    """The OPC UA server of the gateway; `server` is None while it cannot listen."""

    def __init__(self, parts: GatewayParts, works: Works, retry_s: tuple[float, float] = RETRY_S) -> None:
        self.server: UaServer | None = None
        self._parts = parts
        self._works = works
        self._retry_s = retry_s

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


async def _open_server(stack: contextlib.AsyncExitStack, parts: GatewayParts, works: Works) -> "UaServer":
    settings, store, scopes, jobs = parts.settings, parts.store, parts.scopes, works.jobs
    # asyncua takes half a second to import: skip it when the server is off.
    from edge.access.sessions import show_sessions  # noqa: PLC0415
    from edge.uaserver.job_feed import show_work_masters  # noqa: PLC0415
    from edge.uaserver.methods import Services  # noqa: PLC0415
    from edge.uaserver.server import open_server  # noqa: PLC0415
    from edge.uaserver.space import MachineDescription  # noqa: PLC0415

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
            shares_certificate=bool(settings.certificate_hosts),
        )
    )
    await stack.enter_async_context(show_sessions(store, partial(server.live_sessions, name)))

    async def refresh(scope: str) -> None:
        await show_work_masters(store, server, scope)

    async def show_gateway() -> None:
        taken = parts.health.memory
        found = {device.name: device for device in parts.watch.health}
        await server.gateway.show(GatewayView(parts.health.line, taken.used, taken.limit, taken.is_nearly_full, found))

    works.settings.listeners.append(refresh)
    parts.watch.listeners.append(show_gateway)
    await _show_jobs(stack, parts, server)
    for part in server.parts:
        for task, work in part.works.items():
            await parts.keep_running(stack, task, partial(work, server))
    return server


async def _show_jobs(stack: contextlib.AsyncExitStack, parts: GatewayParts, server: "UaServer") -> None:
    # asyncua is imported only where it is used.
    from edge.uaserver.charts import show_charts  # noqa: PLC0415
    from edge.uaserver.job_feed import show_jobs  # noqa: PLC0415

    await parts.keep_running(stack, "OPC UA lists", partial(show_jobs, parts.store, server, parts.scopes))
    await parts.keep_running(stack, "OPC UA maintenance", partial(show_maintenance, parts, server))
    holders = LockHolders(parts.store, parts.active_runs)
    await parts.keep_running(stack, "OPC UA lock holders", holders.follow)
    show_charts(parts.active_runs, server.charts, parts.clock, holders, parts.runs.mirrors)


def open_users(parts: GatewayParts) -> Users:
    """Return the users of a gateway: the servers share them, and with them the delay of logins after failures."""
    # Imported only with a server that needs them.
    from edge.access.login import StoredMemory, Users  # noqa: PLC0415

    roles = [Role[role.upper()] for role in parts.settings.users.totp]
    return Users(Path(parts.settings.users_file), memory=StoredMemory(parts.store), totp_roles=roles)
