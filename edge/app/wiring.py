"""Builds the gateway from its settings: every part, in the order of their dependencies."""

import asyncio
import contextlib
import functools
import pkgutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from edge.app.health import Health
from edge.app.systemd import Notify, discard_status, feed_watchdog
from edge.config import EquipmentSettings, MqttEquipmentSettings, MqttSettings, Settings, broker_settings
from edge.errors import SettingsError, Unavailable
from edge.instant import now_ms
from edge.links import http_page
from edge.links.background_task import background_task
from edge.links.mqtt import MqttSession, open_session
from edge.links.mqtt_broker import MAXIMUM_PACKET_SIZE
from edge.maintenance.opcua_check import certificates_of
from edge.northbound.calls import CallHandler
from edge.northbound.inbox import Inbox
from edge.northbound.progress import ProgressPublisher
from edge.northbound.publisher import Publisher, publish_task_name
from edge.northbound.rpc import open_rpc
from edge.northbound.topics import Topics
from edge.southbound.kinds import KINDS
from edge.southbound.mqtt import open_equipment
from edge.station.active_runs import ActiveRuns
from edge.station.activity import Activity
from edge.station.answers import Answers
from edge.station.clock import SteadyClock, StoreTime, follow_reference_clock
from edge.station.dispatch import Dispatch, routes_of
from edge.station.equipment import EquipmentPort
from edge.station.equipment_tracer import EquipmentTracer
from edge.station.equipment_watch import EquipmentWatch, WatchedEquipment
from edge.station.instance import Instance, TaskFactory, open_instance
from edge.station.jobs import JobService
from edge.station.recipe_lookup import RecipeLookup
from edge.station.response_provider import ResponseProvider
from edge.station.retention import Expiry, RetentionPolicy
from edge.station.runs import Runs
from edge.station.safing import SafingSender
from edge.station.sender import Sender
from edge.station.settings import StationSettings
from edge.station.start import Starter
from edge.station.start_sweep import StartSweep
from edge.station.takeover import TakeOver
from edge.station.timers import Timers
from edge.station.worker import Worker
from edge.store.client import Store
from edge.store.opening import open_store
from edge.uaserver.view import GatewayView

if TYPE_CHECKING:
    from edge.uaserver.server import UaServer

_CONNECT_WITHIN_S = 5.0
"""How long a start waits for a broker; who starts us (systemd) tries again."""

_LARGEST_OF_EQUIPMENT = 1 << 20
"""Four times the largest stored result: a hundred may wait, and a decoded message takes many times its size."""

_CRITICAL = ("worker", "timers", "OPC UA lists")
"""The critical tasks, in addition to the publishers: systemd restarts a gateway in which one of them hangs."""


@dataclass(frozen=True, slots=True)
class _GatewayCore:
    """The parts that adapters share: store, runs, equipment and health."""

    settings: Settings
    store: Store
    instance: Instance
    runs: Runs
    active_runs: ActiveRuns
    watch: EquipmentWatch
    health: Health
    clock: SteadyClock
    store_time: StoreTime

    @property
    def retention(self) -> RetentionPolicy:
        """Return how long ended jobs and their results are kept; without a broker no delivery can be confirmed."""
        keep, has_broker = self.settings.retention, bool(self.settings.mqtt.url)
        confirmation = keep.confirmation if has_broker else "none"
        return RetentionPolicy(keep.ended_jobs * 1000, confirmation, keep.undelivered_jobs, keep.dedupe * 1000)

    @property
    def scopes(self) -> tuple[str, ...]:
        """The served scopes."""
        return self.settings.gateway.scopes

    @property
    def source(self) -> str:
        """The CloudEvents source of published events."""
        return f"urn:microdcs-edge:{self.settings.gateway.name}"


@contextlib.asynccontextmanager
async def open_gateway(settings: Settings, notify: Notify = discard_status) -> AsyncIterator[str]:
    """Open every part and start its work; yield one line that names what is served.

    Interfaces that accept calls open after the parts that execute them, and close before them. Raises SettingsError
    or Unavailable with the missing part.
    """
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        core = await _open_core(stack, settings)
        await _open_equipment(stack, core)
        most = settings.northbound.max_downloadable_job_orders
        dedupe_ms = settings.retention.dedupe * 1000
        dispatch = Dispatch(core.runs, routes_of((each.equipment, each.type_ids) for each in core.watch.watched))
        recipes = RecipeLookup(core.store, core.runs.compiled, dispatch.unrouted)
        jobs = JobService(core.store, core.runs, most, dedupe_ms, now_ms, recipes)
        await _open_background_work(stack, core, jobs, dispatch)
        station_settings = StationSettings(core.store, dedupe_ms)
        max_age_s = settings.northbound.max_age
        calls = CallHandler(core.source, core.scopes, core.store, jobs, station_settings, now_ms, max_age_s)
        server = await _open_opcua(stack, core, jobs, station_settings)
        if settings.mqtt.url:
            await _open_northbound(stack, core, calls)
        sidecars = None
        if settings.rpc.listen:
            sidecars = await enter(open_rpc(settings.rpc, core.store, core.runs, calls, core.source, core.scopes))
        measured = await _open_metrics(stack, core, server)
        serving = _summary(settings, server, sidecars, measured)
        await enter(background_task(feed_watchdog(notify, core.store.heartbeat.stalled), "watchdog"))
        await enter(background_task(core.watch.run(), "equipment watch"))
        await enter(background_task(core.health.publish_status(notify, serving), "health"))
        yield serving


async def _open_core(stack: contextlib.AsyncExitStack, settings: Settings) -> _GatewayCore:
    store = await stack.enter_async_context(open_store(settings.redis, settings.gateway.name))
    scopes, keep = settings.gateway.scopes, settings.retention
    store.heartbeat.expect((*_CRITICAL, *map(publish_task_name, scopes)))
    # Before any session opens: a broker would disconnect the session of another gateway with this name.
    instance = await stack.enter_async_context(open_instance(store, scopes))
    store_time = StoreTime(store)
    await store_time.refresh()
    clock = SteadyClock(store_time)
    runs = Runs(store, clock, keep.ended_jobs * 1000, keep_letters_ms=keep.dead_letters * 1000)
    instance.lease_regained.append(runs.invalidate_all)
    active_runs = ActiveRuns(runs, scopes)
    watch = EquipmentWatch(store, active_runs, clock)
    health = Health(store, active_runs, watch, functools.partial(certificates_of, settings))
    return _GatewayCore(settings, store, instance, runs, active_runs, watch, health, clock, store_time)


async def _open_equipment(stack: contextlib.AsyncExitStack, core: _GatewayCore) -> None:
    southbound, runs = core.settings.southbound, core.runs
    # Messages over a broker can be recorded there.
    tracer = EquipmentTracer(core.store, [name for name, each in southbound.items() if not _is_at_broker(each)])
    await stack.enter_async_context(tracer.tracing())
    for name, section in southbound.items():
        answers = Answers(core.store, runs, core.settings.retention.dedupe * 1000, section.type_ids)
        answers.listeners.append(tracer.of(name))
        equipment = await _open_one(stack, core, name, section, answers)
        core.watch.watched.append(WatchedEquipment(equipment, section.kind, section.type_ids, answers.stats))


def _is_at_broker(section: EquipmentSettings) -> bool:
    return isinstance(section, MqttEquipmentSettings)


async def _open_one(
    stack: contextlib.AsyncExitStack, core: _GatewayCore, name: str, section: EquipmentSettings, answers: Answers
) -> EquipmentPort:
    if not isinstance(section, MqttEquipmentSettings):
        # asyncua is imported only where it is used.
        opener = pkgutil.resolve_name(KINDS[section.kind].opener)
        opened: EquipmentPort = await stack.enter_async_context(opener(name, section, answers, core.scopes))
        return opened
    broker = broker_settings(section, core.settings.mqtt)
    if not broker.url:
        raise SettingsError([f"southbound.{name}: has no broker"], "Set its url, or the url of [mqtt].")
    try:
        session = core.health.sessions[name] = await _open_session(stack, core, name, broker, _LARGEST_OF_EQUIPMENT)
    except Unavailable as error:
        advice = f"{error.advice} It is the broker of southbound.{name}; the gateway starts once it is there."
        raise Unavailable(f"southbound.{name}: {error.message}", advice) from error
    return await open_equipment(name, section, session, answers, core.scopes, core.source)


async def _open_background_work(
    stack: contextlib.AsyncExitStack, core: _GatewayCore, jobs: JobService, dispatch: Dispatch
) -> None:
    """Start the background tasks that decide, for as long as this instance holds its lease."""
    store, runs, scopes = core.store, core.runs, core.scopes
    expiry = Expiry(store, core.retention)
    core.health.problems.append(expiry.problems)
    timers = Timers(store, runs, expiry=expiry)
    jobs.listeners.append(timers.expect)
    safing = SafingSender(store, scopes, dispatch.routes, core.clock)
    core.watch.safing_commands = lambda: safing.open_commands
    worker = Worker(store, scopes, runs, Starter(store, runs, dispatch))
    works: tuple[tuple[str, TaskFactory], ...] = (
        ("sender", Sender(runs, dispatch).run),
        ("safing", safing.run),
        ("worker", worker.run),
        ("timers", timers.run),
        ("take-over", TakeOver(store, scopes, core.instance, runs, worker).run),
        ("clock", functools.partial(follow_reference_clock, core.clock, store, refresh=core.store_time.refresh)),
        ("start sweep", StartSweep(store, scopes, core.clock, worker.claimed).run),
    )
    for name, work in works:
        await stack.enter_async_context(
            background_task(core.instance.lease_held.run_while_open(work, name), f"{name} while present")
        )
    # Runs in progress are shown from the start.
    await core.active_runs.look()
    await stack.enter_async_context(background_task(core.active_runs.follow(), "active runs"))


async def _open_opcua(
    stack: contextlib.AsyncExitStack, core: _GatewayCore, jobs: JobService, station_settings: StationSettings
) -> "UaServer | None":
    settings, store, scopes = core.settings, core.store, core.scopes
    if not settings.opcua.endpoint:
        return None
    # asyncua takes half a second to import: skip it when the server is off.
    from edge.uaserver.chart_feed import show_charts  # noqa: PLC0415
    from edge.uaserver.job_feed import show_jobs, show_work_masters  # noqa: PLC0415
    from edge.uaserver.methods import Services  # noqa: PLC0415
    from edge.uaserver.server import open_server  # noqa: PLC0415
    from edge.uaserver.space import MachineDescription  # noqa: PLC0415

    machines = [MachineDescription(scope, settings.northbound.max_downloadable_job_orders) for scope in scopes]
    tasks = await stack.enter_async_context(asyncio.TaskGroup())
    services = Services(jobs, ResponseProvider(store))
    equipment = tuple(settings.southbound)
    opened = open_server(settings.opcua, settings.gateway.name, machines, services, tasks, equipment=equipment)
    server = await stack.enter_async_context(opened)

    async def refresh(scope: str) -> None:
        await show_work_masters(store, server, scope)

    async def show_gateway() -> None:
        taken = core.health.memory
        found = {each.name: each for each in core.watch.health}
        await server.gateway.show(GatewayView(core.health.line, taken.used, taken.limit, taken.is_nearly_full, found))

    station_settings.listeners.append(refresh)
    core.watch.listeners.append(show_gateway)
    await stack.enter_async_context(background_task(show_jobs(store, server, scopes), "OPC UA lists"))
    show_charts(core.active_runs, server.charts, core.clock)
    return server


async def _open_metrics(stack: contextlib.AsyncExitStack, core: _GatewayCore, server: "UaServer | None") -> str | None:
    if not core.settings.metrics.listen:
        return None
    # Imported only when metrics are on.
    from edge.app.metrics import PATH, MetricSources, page  # noqa: PLC0415

    activity = Activity()
    core.runs.listeners.append(activity.watch)
    sessions = None if server is None else lambda: server.sessions
    name = core.settings.gateway.name
    sources = MetricSources(name, core.scopes, core.store, core.health, core.watch, activity, sessions)
    opened = http_page.serve_page(core.settings.metrics.listen, PATH, functools.partial(page, sources))
    return await stack.enter_async_context(opened)


async def _open_northbound(stack: contextlib.AsyncExitStack, core: _GatewayCore, calls: CallHandler) -> None:
    settings, enter = core.settings, stack.enter_async_context
    session = core.health.sessions["MES"] = await _open_session(stack, core, "", settings.mqtt, MAXIMUM_PACKET_SIZE)
    topics = {scope: Topics(settings.northbound.topic_prefix, scope) for scope in core.scopes}
    for scope, gate in core.instance.publisher_gates.items():
        lifetime_s = settings.retention.retained_topics
        publisher = Publisher(
            core.store, session, core.source, topics[scope], lifetime_s, now_ms, policy=core.retention
        )
        core.health.refusals.append(publisher.refused)
        progress = ProgressPublisher(session, core.source, topics[scope], settings.northbound.progress)
        core.runs.listeners.append(progress.watch)
        await enter(background_task(progress.run(), f"publish progress of {scope}"))
        while_ours = gate.run_while_open(publisher.run, f"publisher of {scope}")
        await enter(background_task(while_ours, f"publisher of {scope} while it is ours"))
    northbound = settings.northbound
    await Inbox(session, calls, northbound.topic_prefix, northbound.response_topics).open(topics)


async def _open_session(
    stack: contextlib.AsyncExitStack, core: _GatewayCore, name: str, mqtt: MqttSettings, largest_packet: int
) -> MqttSession:
    """Open the MQTT session of one adapter; each has its own client id, as a broker allows one session per id."""
    base = core.settings.mqtt.client_id or core.settings.gateway.name
    client_id = f"{base}-{name}" if name else base
    opening = open_session(mqtt, client_id, connect_timeout=_CONNECT_WITHIN_S, largest_packet=largest_packet)
    return await stack.enter_async_context(opening)


def _summary(settings: Settings, server: "UaServer | None", sidecars: str | None, measured: str | None) -> str:
    parts = [f"scopes {', '.join(settings.gateway.scopes)}", f"{len(settings.southbound)} pieces of equipment"]
    if server:
        parts.append(f"OPC UA {server.endpoint}")
    if sidecars:
        parts.append(f"MessagePack-RPC {sidecars}")
    if measured:
        parts.append(f"metrics {measured}")
    return "; ".join(parts)
