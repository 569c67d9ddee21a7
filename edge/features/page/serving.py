"""Serves the station page with its libraries; imported in a thread, as they are large."""

import asyncio
import contextlib
import functools
import gc
import ssl
from collections.abc import AsyncIterator, Iterable, Sequence

import structlog

from edge import __version__
from edge.access.sessions import show_sessions
from edge.access.web_audit import WebAudit
from edge.app.interface import open_interface
from edge.app.parts import GatewayParts
from edge.features.page.caller import identify
from edge.features.page.events import EventHub
from edge.features.page.manual import FOLDERS
from edge.features.page.models import Status
from edge.features.page.server import ConnectionBounds, WebAddress, build_app, serve
from edge.features.page.service import PageParts
from edge.features.page.services import WebServices
from edge.features.page.sessions import WebSessions
from edge.features.page.settings import WebSettings
from edge.features.page.tools import LogMemory, gateway_tools
from edge.foundation.instant import now_ms
from edge.foundation.text import language_for, stated_in
from edge.model.equipment_health import EquipmentHealth
from edge.model.plant import public_maintenance
from edge.station.intervene import intervene
from edge.station.public_job import equipment_by_type

logger = structlog.get_logger(__name__)


async def serve_page(parts: GatewayParts, services: WebServices, tls: ssl.SSLContext | None) -> None:
    """Serve the page until cancelled."""
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


def services_of(page: PageParts, memory: LogMemory) -> WebServices:
    """Return what the page works with."""
    parts, jobs = page.core, page.jobs
    settings = parts.settings
    events = EventHub(parts.store, parts.scopes)
    audit = WebAudit(parts.trail)
    return WebServices(
        gateway=settings.gateway.name,
        scopes=tuple(parts.scopes),
        store=parts.store,
        jobs=jobs,
        intervene=functools.partial(intervene, jobs.runs, dedupe_ms=jobs.dedupe_ms),
        status=functools.partial(status_of, parts),
        equipment=lambda: parts.watch.health,
        active_jobs=parts.active_runs.loaded.values,
        jobs_clock=parts.clock,
        equipment_by_type=equipment_by_type(settings.southbound),
        users=page.users,
        sessions=WebSessions(now_ms, settings.section(WebSettings).idle, settings.users.session, page.users.role_of),
        events=events,
        notify=events.publish,
        ports=parts.ports,
        audit=audit,
        identify=functools.partial(identify, page.users, audit),
        is_badge=page.users.has_badge,
        recognizes_badge=page.users.recognizes_badge,
        clock=now_ms,
        is_kiosk=settings.section(WebSettings).kiosk == "on",
        is_tls=settings.section(WebSettings).is_tls,
        panels=settings.section(WebSettings).panels,
        reason_for=settings.section(WebSettings).reason_for,
        tools=gateway_tools(parts, page.settings_file, memory),
        manual=FOLDERS,
        store_state=lambda: parts.health.servers.state,
    )


def status_of(parts: GatewayParts, languages: Sequence[str]) -> Status:
    """Return the state of the gateway in short, in a language of the reader."""
    mode, language = parts.mode.in_force, language_for(languages)
    maintenance = public_maintenance(mode, parts.mode.message(languages) if mode else "")
    return Status(
        gateway=parts.settings.gateway.name,
        version=__version__,
        line=parts.health.text.in_language(language),
        problems=stated_in(parts.health.problem_text, language),
        work_waits=stated_in(parts.store.unconfirmed or parts.health.work_waits, language),
        scopes=tuple(parts.scopes),
        active_runs=parts.active_runs.count,
        maintenance=maintenance,
    )


@contextlib.asynccontextmanager
async def _following(parts: GatewayParts, services: WebServices) -> AsyncIterator[None]:
    """Notify open pages of changes, and list the logins, for the length of the block."""
    events, shown_equipment = services.events, _ShownEquipment()

    async def note_equipment() -> None:
        if shown_equipment.has_changed(parts.watch.health):
            events.note_equipment()

    sessions = functools.partial(services.sessions.live_sessions, parts.settings.gateway.name)
    parts.runs.listeners.append(events.note_progress)
    parts.mode.listeners.append(events.note_mode)
    parts.watch.listeners.append(note_equipment)
    parts.health.listeners.append(events.note_health)
    try:
        async with contextlib.AsyncExitStack() as stack:
            await parts.keep_running(stack, "web events", events.run)
            await stack.enter_async_context(show_sessions(parts.store, sessions))
            yield
    finally:
        parts.runs.listeners.remove(events.note_progress)
        parts.mode.listeners.remove(events.note_mode)
        parts.watch.listeners.remove(note_equipment)
        parts.health.listeners.remove(events.note_health)


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
