"""Opens the OPC UA server, updates the nodes of its machines, and lists its sessions."""

import asyncio
import contextlib
import errno
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import structlog
from asyncua import Server, ua
from msgspec import Struct, field

import edge
from edge.access.audit_trail import AuditTrail
from edge.access.login import Users
from edge.access.sessions import LiveSession
from edge.config import OpcuaSettings
from edge.foundation.errors import SettingsError, Unavailable
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.model.acceptance import Allowed
from edge.model.isa95 import JobOrderAndState, JobResponse, JobStatusEvent, WorkMaster
from edge.model.job_state import JobState
from edge.model.user import Session
from edge.opcua import limits
from edge.opcua.access import Caller
from edge.opcua.server_core import ServerCore
from edge.opcua.server_session import ServerSession
from edge.opcua.server_transport import TcpListener
from edge.uaserver import nodesets, security, server_object, type_cache
from edge.uaserver.certificate_renewal import CertificateRenewal
from edge.uaserver.certificates import OwnCertificate
from edge.uaserver.chart_types import add_chart_types
from edge.uaserver.charts import Charts
from edge.uaserver.condition_space import ConditionSpace
from edge.uaserver.declarations import Declarations, declarations
from edge.uaserver.events import JobEventPublisher
from edge.uaserver.gateway_object import GATEWAY_NAME, GatewayObject
from edge.uaserver.live_list import LiveList, notify_subscribers
from edge.uaserver.maintenance_object import MaintenanceObject
from edge.uaserver.methods import JobMethodService, Services, Target
from edge.uaserver.namespaces import (
    PRODUCT_URI,
    TYPES_PUBLISHED,
    TYPES_URI,
    TYPES_VERSION,
    Namespace,
    application_uri,
    charts_uri,
    machines_uri,
)
from edge.uaserver.parts import AddPart, NewServer, ServerPart
from edge.uaserver.security import AccessControl
from edge.uaserver.space import (
    JOB_ORDER_STATUS_EVENT,
    MachineDescription,
    MachineNodes,
    Nameplate,
    add_event_type,
    add_machine,
    add_namespace_metadata,
    make_notifier_of_machines,
)
from edge.uaserver.view import MaintenanceView

_MOST_CHARACTERS = 200


def live_sessions(open_sessions: Iterable[ServerSession], instance: str) -> Iterator[LiveSession]:
    """Yield each activated session with its user, client and last request."""
    for server_session in open_sessions:
        if server_session.caller is not None and not server_session.is_closed:
            session = _session(server_session, server_session.caller, instance)
            yield LiveSession(
                server_session.record.id, session, server_session.record.last_contact, partial(_close, server_session)
            )


async def _close(session: ServerSession) -> None:
    session.close()


def _session(session: ServerSession, caller: Caller, instance: str) -> Session:
    return Session(
        user=caller.name or "anonymous",
        role=caller.role.name.lower(),
        way="opcua",
        instance=instance,
        since=round(session.record.connected_at.timestamp() * 1000),
        address=caller.address,
        client=(caller.application or session.record.asked.SessionName or "")[:_MOST_CHARACTERS],
    )


logger = structlog.get_logger(__name__)

_ENDED = frozenset({JobState.ENDED, JobState.ABORTED})
_PORT, _LOOPBACK = 4840, "127.0.0.1"  # IANA: opc.tcp


class _Machine(Struct, frozen=True):
    """The changing parts of a machine: its lists, its events, the resources that its MES allows."""

    nodes: MachineNodes
    max_job_orders: int
    is_limited: bool
    """Whether the lists hold no more jobs than MaxDownloadableJobOrders (OPC 10031-4, Table 12)."""
    job_orders: LiveList
    job_responses: LiveList
    work_masters: LiveList
    events: JobEventPublisher
    ended: dict[str, None] = field(default_factory=dict)
    """The ended jobs in the lists, the oldest first."""


class UaServer:
    """The running server. Its lists are updated at once; their subscribers are notified within live_list.BUNDLE_S.

    `charts` shows the running jobs of all machines, `gateway` the state of the gateway, `maintenance` its mode,
    `listener` accepts connections, and `parts` are what others have added.
    """

    def __init__(
        self,
        endpoint: str,
        core: ServerCore,
        methods: JobMethodService,
        machines: Mapping[str, _Machine],
        charts: Charts,
        gateway: GatewayObject,
        maintenance: MaintenanceObject,
        listener: TcpListener,
        parts: Sequence[ServerPart],
    ) -> None:
        self.endpoint = endpoint
        self.listener = listener
        self.charts = charts
        self.gateway = gateway
        self.maintenance = maintenance
        self.parts = parts
        self._core = core
        self._methods = methods
        self._machines = machines

    def live_sessions(self, instance: str) -> list[LiveSession]:
        """Return the activated sessions of clients, for the list of sessions of a gateway."""
        return list(live_sessions(self._core.client_sessions, instance))

    @property
    def sessions(self) -> int:
        """The number of sessions of clients."""
        return self._core.sessions

    def shown(self, scope: str) -> Collection[str]:
        """Return the ids of the jobs in the list of orders."""
        return self._machines[scope].job_orders.identifiers

    def show(self, scope: str, entry: JobOrderAndState, response: JobResponse | None) -> None:
        """Show the current state of a job; without a response, only in the list of orders (OPC 10031-4, 6.2.7.1)."""
        machine = self._machines[scope]
        job_order_id = entry.job_order.job_order_id
        machine.job_orders.put(job_order_id, entry)
        if response is None:
            machine.job_responses.drop(job_order_id)
        else:
            machine.job_responses.put(job_order_id, response)
        machine.ended.pop(job_order_id, None)
        if entry.state[0].state_number in _ENDED:
            machine.ended[job_order_id] = None
        self._limit_lists(scope)

    def _limit_lists(self, scope: str) -> None:
        """Remove ended jobs, the oldest first, as far as the lists are longer than MaxDownloadableJobOrders."""
        machine = self._machines[scope]
        if machine.is_limited:
            node_id = machine.nodes.max_job_orders
            most = self._core.aspace.read_attribute_value(node_id, ua.AttributeIds.Value).Value.Value
            while len(machine.job_orders.identifiers) > most and machine.ended:
                self.hide(scope, next(iter(machine.ended)))

    def hide(self, scope: str, job_order_id: str) -> None:
        """Remove a job from both lists: it was cancelled or cleared, or it has expired."""
        machine = self._machines[scope]
        machine.job_orders.drop(job_order_id)
        machine.job_responses.drop(job_order_id)
        machine.ended.pop(job_order_id, None)

    def has_event_listeners(self, scope: str) -> bool:
        """Return whether a client monitors the events of a machine or of the Server object."""
        return self._machines[scope].events.has_listeners()

    async def publish_event(self, scope: str, status_event: JobStatusEvent, at: datetime) -> None:
        """Publish a change of a job's state that happened at an instant."""
        await self._machines[scope].events.publish_event(status_event, at)

    async def show_allowed(self, scope: str, allowed: Allowed) -> None:
        """Show the allowed resources of a machine and its maximum number of job orders (OPC 10031-4, 6.2.1)."""
        machine = self._machines[scope]
        most = machine.max_job_orders if allowed.max_job_orders is None else allowed.max_job_orders
        await self._write(machine.nodes.max_job_orders, ua.Variant(most, ua.VariantType.UInt16))
        self._limit_lists(scope)
        for kind, node_id in machine.nodes.allowed.items():
            ids = sorted(allowed.resources.get(kind, ()))
            await self._write(node_id, ua.Variant(ids, ua.VariantType.String, is_array=True))

    async def _write(self, node_id: ua.NodeId, value: ua.Variant) -> None:
        aspace = self._core.aspace
        if aspace.read_attribute_value(node_id, ua.AttributeIds.Value).Value != value:
            now = datetime.now(UTC)
            shown = ua.DataValue(value, SourceTimestamp=now, ServerTimestamp=now)
            (await aspace.write_attribute_value(node_id, ua.AttributeIds.Value, shown)).check()

    def follow_jobs(
        self,
        refresh: Callable[[str, str], Awaitable[None]],
        prepare: Callable[[], Awaitable[None]],
        note_session: Callable[[], None],
    ) -> None:
        """Call `refresh` with scope and job order before a method is answered, `prepare` before a list is read.

        `note_session` is called for each new session.
        """
        self._methods.refresh, self._core.note_session = refresh, note_session
        for machine in self._machines.values():
            for node in (machine.nodes.job_order_list, machine.nodes.job_order_response_list):
                self._core.preparations[node] = prepare

    @property
    def is_watched(self) -> bool:
        """Whether a client monitors a list of jobs."""
        return any(item.job_orders.is_watched or item.job_responses.is_watched for item in self._machines.values())

    def work_masters(self, scope: str, work_masters: Sequence[WorkMaster]) -> None:
        """Show the Work Masters for which the machine has recipes."""
        self._machines[scope].work_masters.replace({master.id: master for master in work_masters})


@contextlib.asynccontextmanager
async def open_server(
    settings: OpcuaSettings,
    gateway: str,
    machines: Sequence[MachineDescription],
    services: Services,
    tasks: TaskGroup,
    activation_s: float = limits.ACTIVATION_S,
    equipment: Sequence[str] = (),
    trail: AuditTrail | None = None,
    users: Users | None = None,
    parts: Sequence[AddPart] = (),
    *,
    kinds: Mapping[str, int],
    shares_certificate: bool = False,
) -> AsyncIterator[UaServer]:
    """Serve the machines until the context exits; the server's own tasks run in `tasks`.

    The server shows the state of each piece of `equipment`; `kinds` are the numbers of all kinds. It closes a session
    that its client has not activated within `activation_s` seconds after its creation. Calls and logins are recorded in
    `trail`. Without `users` those of the settings log in. `parts` add to it before it listens. `shares_certificate`:
    the station page has the same.

    Raises SettingsError when endpoint or certificate are unusable, or when the cache of the types is and node sets are
    missing; Unavailable while the address or the port is unavailable or the disk is full.
    """
    directory = Path(settings.nodesets) if settings.nodesets else nodesets.default_directory()
    host, port = _where_to_listen(settings.endpoint)
    uri = application_uri(gateway)
    renewal = CertificateRenewal(settings, uri, is_shared=shares_certificate)
    # A thread, as the first start generates a key and resolves the names of this host.
    own = await asyncio.to_thread(renewal.load)
    with _prepared_types(directory) as types:
        iserver = ServerCore(types, AccessControl(settings, users, trail), activation_s, limits_of(settings))
        server = Server(iserver=iserver)
        await server.init()
        await iserver.write_limits()
        if types is None:
            await nodesets.import_types(server, nodesets.prepared(directory))
        declared = declarations(iserver.aspace) if types is None else types.declarations
        await _introduce(server, declared, settings, gateway)
        nodes = await _add_machines(server, declared, settings, gateway, machines)
        charts = _add_charts(server, nodes)
        gateway_object = GatewayObject(iserver, equipment, kinds)
        maintenance = MaintenanceObject(iserver, {scope: found.building_blocks for scope, found in nodes.items()})
        await maintenance.show(MaintenanceView(None, lambda _: "", frozenset()))
        changed = asyncio.Event()
        most = {machine.scope: machine.max_downloadable_job_orders for machine in machines}
        is_limited = settings.job_order_list == "limited"
        shown = {
            scope: _machine(server, scope, found, most[scope], changed, is_limited=is_limited)
            for scope, found in nodes.items()
        }
        sources = {scope: found.machine for scope, found in nodes.items()} | {GATEWAY_NAME: gateway_object.node_id}
        job_events = {scope: item.events for scope, item in shown.items()}
        conditions = ConditionSpace(server, declared, tasks)
        listener = TcpListener(iserver)
        new = NewServer(server, listener, settings, own, uri, declared, sources, job_events, tasks, conditions)
        added = [part for add in parts if (part := await add(new))]
        targets = _targets(nodes) | gateway_object.targets | maintenance.targets

        def target_of(node_id: ua.NodeId) -> Target | None:
            found = targets.get(node_id) or charts.target_of(node_id)
            return found or next((target for part in added if (target := part.target_of(node_id))), None)

        methods = JobMethodService(iserver.aspace, target_of, services, iserver.turns.decoder)
        iserver.call_method = methods.call
        endpoint = await _listen(server, listener, settings, own, host, port)
        logger.info("OPC UA server listening", endpoint=endpoint, machines=list(nodes))
        lists = [(item.job_orders, item.job_responses, item.work_masters) for item in shown.values()]
        everything = tuple(live for row in lists for live in row)
        server_object.show_clock(iserver)
        running = (
            tasks.create_task(renewal.watch(iserver), name="opcua certificate"),
            tasks.create_task(notify_subscribers(everything, changed), name="opcua notifications"),
            tasks.create_task(charts.notify_subscribers(), name="opcua chart notifications"),
            tasks.create_task(server_object.notify_subscribers(iserver), name="opcua diagnostics"),
        )
        try:
            yield UaServer(endpoint, iserver, methods, shown, charts, gateway_object, maintenance, listener, added)
        finally:
            for task in running:
                task.cancel()
            await listener.stop()
            await iserver.stop()


def limits_of(settings: OpcuaSettings) -> limits.ServerLimits:
    """Return the limits that the settings set."""
    return limits.ServerLimits(
        connections=settings.max_connections,
        sessions=settings.max_sessions,
        subscriptions=settings.max_subscriptions,
        subscriptions_of_session=settings.max_subscriptions_per_session,
        monitored_items_of_session=settings.max_monitored_items_per_session,
        queued_values=settings.max_queued_values,
        queued_events=settings.max_queued_events,
        min_publishing_interval_ms=settings.min_publishing_interval * 1000,
        nodes_per_read=settings.max_nodes_per_read,
        nodes_per_browse=settings.max_nodes_per_browse,
    )


@contextlib.contextmanager
def _prepared_types(directory: Path) -> Iterator[type_cache.TypeNodes | None]:
    path = nodesets.cache_path(directory)
    try:
        types = type_cache.read(path, nodesets.cache_key())
    except type_cache.UnusableCache as error:
        logger.warning("OPC UA type cache unusable, importing node sets", file=str(path), reason=str(error))
        yield None
        return
    with types:
        yield types


def _where_to_listen(endpoint: str) -> tuple[str, int]:
    parts = urlsplit(endpoint)
    host = parts.hostname or _LOOPBACK
    port = _PORT if parts.port is None else parts.port
    return (_LOOPBACK if host == "localhost" else host), port


async def _introduce(server: Server, declared: Declarations, settings: OpcuaSettings, gateway: str) -> None:
    server.product_uri = PRODUCT_URI
    server.application_type = ua.ApplicationType.Server
    server.set_server_name(f"microdcs-edge {gateway}")
    await server.set_application_uri(application_uri(gateway))
    await nodesets.register_official(server)
    await nodesets.register(server, Namespace.TYPES, TYPES_URI)
    await nodesets.register(server, Namespace.MACHINES, machines_uri(gateway))
    await nodesets.register(server, Namespace.CHARTS, charts_uri(gateway))
    add_namespace_metadata(server.iserver, declared, TYPES_URI, TYPES_VERSION, TYPES_PUBLISHED, is_static=True)
    version = edge.__version__
    built = server_object.build_date()
    for uri in (application_uri(gateway), machines_uri(gateway), charts_uri(gateway)):
        add_namespace_metadata(server.iserver, declared, uri, version, built, is_static=False)
    await server.set_build_info(PRODUCT_URI, settings.manufacturer, "microdcs-edge", version, version, built)
    await server_object.show_server(server.iserver)


async def _add_machines(
    server: Server,
    declared: Declarations,
    settings: OpcuaSettings,
    gateway: str,
    machines: Sequence[MachineDescription],
) -> dict[str, MachineNodes]:
    iserver = server.iserver
    add_event_type(iserver)
    make_notifier_of_machines(iserver)
    nodes = {}
    for machine in machines:
        uri = settings.product_instance_uri or application_uri(gateway)
        # Each of several machines needs its own URI; a single machine uses that of the gateway.
        unique = uri if len(machines) == 1 else f"{uri}/{machine.scope}"
        nameplate = Nameplate(settings.manufacturer, settings.serial_number, unique)
        nodes[machine.scope] = await add_machine(iserver, declared, machine, nameplate)
    return nodes


def _add_charts(server: Server, nodes: Mapping[str, MachineNodes]) -> Charts:
    add_chart_types(server.iserver)
    charts = Charts(server.iserver)
    for scope, machine_nodes in nodes.items():
        charts.add_machine(scope, machine_nodes.machine)
    return charts


def _targets(nodes: Mapping[str, MachineNodes]) -> dict[ua.NodeId, Target]:
    return {
        node_id: Target(scope, methods)
        for scope, machine_nodes in nodes.items()
        for node_id, methods in machine_nodes.methods.items()
    }


def _machine(
    server: Server,
    scope: str,
    nodes: MachineNodes,
    max_job_orders: int,
    changed: asyncio.Event,
    *,
    is_limited: bool,
) -> _Machine:
    aspace = server.iserver.aspace
    return _Machine(
        nodes=nodes,
        max_job_orders=max_job_orders,
        is_limited=is_limited,
        job_orders=LiveList(aspace, nodes.job_order_list, changed, JobOrderAndState),
        job_responses=LiveList(aspace, nodes.job_order_response_list, changed, JobResponse),
        work_masters=LiveList(aspace, nodes.work_master, changed, WorkMaster),
        events=JobEventPublisher(server.iserver, nodes.job_order_results, nodes.machine, scope, JOB_ORDER_STATUS_EVENT),
    )


async def _listen(
    server: Server, listener: TcpListener, settings: OpcuaSettings, own: OwnCertificate, host: str, port: int
) -> str:
    core: ServerCore = server.iserver
    try:
        await listener.start(host, port)
    except OSError as error:
        reason = error.strerror if isinstance(error, socket.gaierror) else os.strerror(error.errno or 0)
        problem = Text.of("opcua.endpoint: cannot listen on {url}: {reason}", url=_url(host, port), reason=reason)
        if error.errno == errno.EADDRINUSE:
            raise Unavailable(problem, "Stop the other program that uses this port, or choose another.") from error
        if isinstance(error, PermissionError):
            raise SettingsError([problem], "Choose a port above 1023.") from error
        # The address may become available later: a second network interface, DHCP, a name server.
        advice = "Check that this host has the address; the gateway retries and serves everything else."
        raise Unavailable(problem, advice) from error
    endpoint = _url(host, listener.port)
    application = ua.ApplicationDescription(
        ApplicationUri=server.get_application_uri(),
        ProductUri=server.product_uri,
        ApplicationName=ua.LocalizedText(server.name),
        ApplicationType=ua.ApplicationType.Server,
        DiscoveryUrls=[endpoint],
    )
    security.configure_security(core, settings, own, application)
    await core.start()
    return endpoint


def _url(host: str, port: int) -> str:
    return f"opc.tcp://[{host}]:{port}" if ":" in host else f"opc.tcp://{host}:{port}"
