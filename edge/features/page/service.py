"""Serves the station page; retries in the background while its address is taken, as the OPC UA server does."""

import asyncio
import contextlib
import functools
import gc
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import structlog
from msgspec import Struct

from edge import __version__
from edge.access.sessions import show_sessions
from edge.app.interface import open_interface
from edge.app.parts import GatewayParts, Works
from edge.features.page.models import MaintenanceState, Status
from edge.features.page.settings import WebSettings
from edge.features.page.tools import LogMemory, remembered_log
from edge.foundation.errors import SettingsError
from edge.foundation.instant import now_ms
from edge.model.equipment_health import EquipmentHealth
from edge.model.instant import rfc3339
from edge.station.intervene import intervene
from edge.station.jobs import JobService

if TYPE_CHECKING:
    from edge.access.login import Users
    from edge.features.page.services import WebServices

logger = structlog.get_logger(__name__)


class PageParts(Struct, frozen=True):
    """The parts that the page works with."""

    core: GatewayParts
    jobs: JobService
    users: "Users"
    settings_file: Path | None = None


async def open_page(stack: contextlib.AsyncExitStack, core: GatewayParts, works: Works) -> None:
    """Serve the page until the stack closes. Its libraries are imported in a thread: nothing waits for them.

    Raises SettingsError for a certificate that cannot be used, and without the libraries.
    """
    if works.users is None:
        return
    page = PageParts(core, works.jobs, works.users, works.settings_file)
    tls = await _tls_context(core) if core.settings.section(WebSettings).is_tls else None
    await core.keep_running(stack, "station page", functools.partial(_serve, page, tls))


async def _serve(page: PageParts, tls: ssl.SSLContext | None) -> None:
    with remembered_log() as memory:
        services = await asyncio.to_thread(_services, page, memory)
        await _serve_with(page.core, services, tls)


async def _serve_with(parts: GatewayParts, services: "WebServices", tls: ssl.SSLContext | None) -> None:
    from edge.features.page.server import (  # noqa: PLC0415 - only where the page is on
        ConnectionBounds,
        WebAddress,
        build_app,
        serve,
    )

    settings = parts.settings.section(WebSettings)
    # Templates are compiled meanwhile: nothing waits for them, and the first view finds them ready.
    app = await asyncio.to_thread(build_app, services)
    # As at the start of the gateway: a collection that visits libraries and templates would take tens of milliseconds.
    gc.freeze()
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(services.tools.close)
        await stack.enter_async_context(_following(parts, services))
        host, port = settings.address
        bounds = ConnectionBounds(settings.max_connections, settings.max_connections // 2)
        opener = functools.partial(serve, app, WebAddress(host, port, tls), bounds)
        problems, defects = parts.health.interface_problems, parts.store.defects
        if url := await open_interface(stack, "station page", opener, problems, defects):
            logger.info("station page available", url=url)
        await asyncio.Event().wait()


def _services(page: PageParts, memory: LogMemory) -> "WebServices":
    """Return what the page works with. Raises SettingsError without the libraries."""
    try:
        from edge.access.web_audit import WebAudit  # noqa: PLC0415 - only where the page is on
        from edge.features.page.events import EventHub  # noqa: PLC0415 - as above
        from edge.features.page.server import build_app  # noqa: F401, PLC0415 - as above
        from edge.features.page.services import WebServices  # noqa: PLC0415 - as above
        from edge.features.page.sessions import WebSessions  # noqa: PLC0415 - as above
        from edge.features.page.tools import gateway_tools  # noqa: PLC0415 - imports the libraries here, in a thread
    except ImportError as error:
        problem = f"web.listen: needs a library that is not installed: {error}"
        raise SettingsError([problem], "Install it: pip install 'microdcs-edge[web]'") from None
    parts, jobs = page.core, page.jobs
    settings = parts.settings
    events = EventHub(parts.store, parts.scopes)
    return WebServices(
        gateway=settings.gateway.name,
        scopes=tuple(parts.scopes),
        store=parts.store,
        jobs=jobs,
        intervene=functools.partial(intervene, jobs.runs, dedupe_ms=jobs.dedupe_ms),
        status=functools.partial(status_of, parts),
        equipment=lambda: parts.watch.health,
        users=page.users,
        sessions=WebSessions(now_ms, settings.section(WebSettings).idle, settings.users.session, page.users.role_of),
        events=events,
        notify=events.publish,
        ports=parts.ports,
        audit=WebAudit(parts.trail),
        clock=now_ms,
        is_kiosk=settings.section(WebSettings).kiosk == "on",
        is_tls=settings.section(WebSettings).is_tls,
        tools=gateway_tools(parts, page.settings_file, memory),
        store_state=lambda: parts.health.servers.state,
    )


def status_of(parts: GatewayParts, languages: Sequence[str]) -> Status:
    """Return the state of the gateway in short, the message of a maintenance mode in a language of the reader."""
    mode = parts.mode.in_force
    maintenance = MaintenanceState(on=False)
    if mode is not None:
        until = None if mode.until is None else rfc3339(mode.until)
        message = parts.mode.message(languages)
        maintenance = MaintenanceState(on=True, kind=mode.kind.value, message=message, by=mode.by, until=until)
    return Status(
        gateway=parts.settings.gateway.name,
        version=__version__,
        line=parts.health.line,
        problems=parts.health.problem_line,
        scopes=tuple(parts.scopes),
        active_runs=parts.active_runs.count,
        maintenance=maintenance,
    )


@contextlib.asynccontextmanager
async def _following(parts: GatewayParts, services: "WebServices") -> AsyncIterator[None]:
    """Notify open pages of changes, and list the logins, for the length of the block."""
    events, shown = services.events, _ShownEquipment()

    async def note_equipment() -> None:
        if shown.has_changed(parts.watch.health):
            events.note_equipment()

    sessions = functools.partial(services.sessions.live_sessions, parts.settings.gateway.name)
    parts.runs.listeners.append(events.note_progress)
    parts.mode.listeners.append(events.note_mode)
    parts.watch.listeners.append(note_equipment)
    try:
        async with contextlib.AsyncExitStack() as stack:
            await parts.keep_running(stack, "web events", events.run)
            await stack.enter_async_context(show_sessions(parts.store, sessions))
            yield
    finally:
        parts.runs.listeners.remove(events.note_progress)
        parts.mode.listeners.remove(events.note_mode)
        parts.watch.listeners.remove(note_equipment)


class _ShownEquipment:
    """What pages show of the equipment: counters alone are not change."""

    def __init__(self) -> None:
        self._facts: tuple[tuple[object, ...], ...] = ()

    def has_changed(self, health: Iterable[EquipmentHealth]) -> bool:
        """Return whether the equipment differs from the last call."""
        before = self._facts
        self._facts = tuple(
            (device.name, device.connected, device.obstacle, device.safing, device.outstanding) for device in health
        )
        return before != self._facts


async def _tls_context(parts: GatewayParts) -> ssl.SSLContext:
    """Return the TLS context with the certificate of the settings, else that of the OPC UA server."""
    settings = parts.settings.section(WebSettings)
    if settings.shares_certificate:
        # Imported only for the certificate of the OPC UA server.
        from edge.uaserver import certificates  # noqa: PLC0415
        from edge.uaserver.namespaces import application_uri  # noqa: PLC0415

        directory = Path(parts.settings.opcua.pki)
        uri = application_uri(parts.settings.gateway.name)
        hosts = certificates.server_hosts(parts.settings.opcua, settings.address[0])
        await asyncio.to_thread(certificates.load_or_make, directory, uri, hosts)
        cert_file, key_file = str(directory / "own.pem"), ""
    else:
        cert_file, key_file = settings.cert_file, settings.key_file
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(cert_file, key_file or None)
    except (OSError, ssl.SSLError) as error:
        problem = f"web.cert_file: {cert_file} cannot be used: {error}"
        raise SettingsError([problem], "Name a certificate and its private key, both as PEM.") from error
    return context
