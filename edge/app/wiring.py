"""Builds the gateway from its settings: every part, in the order of their dependencies."""

import contextlib
import functools
import pkgutil
from collections.abc import AsyncIterator, Iterable
from pathlib import Path
from typing import Protocol

from edge.access.audit_trail import open_trail
from edge.access.locks import keep_swept
from edge.access.mode import ModeWatch
from edge.app.component import GatewayDescription, join_plant
from edge.app.features import (
    calls_switched_off,
    equipment_kinds,
    has_logins,
    mirrored_sets,
    open_features,
    prepare_features,
    recipe_checks,
    serve_features,
    settings_kinds,
    work_master_recorders,
)
from edge.app.health import Health
from edge.app.interface import open_interface
from edge.app.operations import end_upgrade, operation_calls, run_operations
from edge.app.parts import GatewayMemory, GatewayParts, OpenGateway, Works, open_session, open_users
from edge.app.systemd import Notify, discard_status, feed_watchdog
from edge.config import (
    EquipmentSettings,
    MqttEquipmentSettings,
    Settings,
    broker_settings,
)
from edge.equipment.mqtt import open_equipment
from edge.foundation.errors import SettingsError
from edge.foundation.instant import now_ms
from edge.foundation.task_group import background_task
from edge.foundation.text import Text
from edge.links.http_server import serve_page
from edge.links.mqtt_broker import MAXIMUM_PACKET_SIZE
from edge.model.finding import HealthFinding
from edge.northbound.calls import CallHandler, CallServices
from edge.northbound.events import LateResultPublisher, ProgressPublisher
from edge.northbound.inbox import Inbox
from edge.northbound.publisher import Publisher, publish_task_name
from edge.northbound.topics import Topics
from edge.station.active_runs import ActiveRuns, Activity, MaintenancePause
from edge.station.answers import Answers
from edge.station.clock import SteadyClock, StoreTime, follow_reference_clock
from edge.station.decision import second_person
from edge.station.direct_commands import DirectCommands
from edge.station.equipment import EquipmentPort
from edge.station.equipment_watch import EquipmentWatch, WatchedEquipment
from edge.station.instance import TakeOver, TaskFactory, open_instance
from edge.station.jobs import JobService
from edge.station.retention import Deliveries, Expiry, KeptJobs
from edge.station.runs import Runs
from edge.station.safing_sender import SafingSender
from edge.station.sender import Dispatch, Sender, routes_of
from edge.station.settings import SettingOrigin, SettingSource, StationSettings
from edge.station.start import RecipeLookup, Starter, StartSweep
from edge.station.timers import Timers
from edge.station.traffic_publisher import TrafficPublisher
from edge.station.waiting_runs import LockSweep, MirrorWatch
from edge.station.worker import Worker
from edge.store import dedupe
from edge.store.bounds import CountLimits
from edge.store.open_store import open_store


class ServedOpcua(Protocol):
    """The OPC UA server as others see it."""

    @property
    def endpoint(self) -> str:
        """Its address; empty while it cannot listen."""

    @property
    def sessions(self) -> int:
        """The number of OPC UA sessions."""


def summary_of(core: GatewayParts, opcua: ServedOpcua | None, sidecars: str, measured: str) -> str:
    """Return what is served: scopes, equipment and the addresses of the servers, empty ones without."""
    settings = core.settings
    pieces = len(settings.southbound)
    parts = [f"scopes {', '.join(settings.gateway.scopes)}", f"{pieces} piece{'' if pieces == 1 else 's'} of equipment"]
    if opcua and opcua.endpoint:
        parts.append(f"OPC UA {opcua.endpoint}")
    if sidecars:
        parts.append(f"MessagePack-RPC {sidecars}")
    parts += [text for opened in core.opened for serving in opened.serving if (text := serving())]
    if measured:
        parts.append(f"metrics {measured}")
    return "; ".join(parts)


_LARGEST_OF_EQUIPMENT = 1 << 20
"""Four times the largest stored result: a hundred may wait, and a decoded message takes many times its size."""

_CRITICAL = ("worker", "timers", "OPC UA lists")
"""The critical tasks, in addition to the publishers: systemd restarts a gateway in which one of them hangs."""


@contextlib.asynccontextmanager
async def open_gateway(
    settings: Settings,
    notify: Notify = discard_status,
    settings_file: Path | None = None,
    memory: GatewayMemory | None = None,
) -> AsyncIterator[OpenGateway]:
    """Open every part and start its work, until the store is over at the latest.

    Interfaces that accept calls open after the parts that execute them, and close before them. Only the store is
    required: every other unavailable part is retried, and named in the line. Commands of the fleet read the settings
    from `settings_file`. `memory` is what this process keeps of the gateway that it had open before. Raises
    SettingsError, or Unavailable without the store.
    """
    memory = memory or GatewayMemory()
    async with contextlib.AsyncExitStack() as stack:
        enter = stack.enter_async_context
        core = await _open_core(stack, settings, memory)
        await end_upgrade(core)
        await prepare_features(stack, core)
        await _open_equipment(stack, core)
        most = settings.northbound.max_downloadable_job_orders
        dedupe_ms = settings.retention.dedupe * 1000
        routes = routes_of(
            (watched_equipment.equipment, watched_equipment.type_ids) for watched_equipment in core.watch.watched
        )
        dispatch = Dispatch(core.runs, routes, core.direct_commands.is_busy)
        recipes = RecipeLookup(core.store, core.runs.compiled, dispatch.unrouted, mirrored_sets(settings))
        jobs = JobService(
            core.store,
            core.runs,
            most,
            dedupe_ms,
            core.store_time.host_ms,
            recipes,
            core.retention.refuses_beyond,
            core.mode,
            memory.accepted_jobs,
        )
        users = open_users(core) if settings.opcua.endpoint or has_logins(settings) else None
        recorders = work_master_recorders(settings, SettingOrigin(SettingSource.MES))
        describe = GatewayDescription(core, now_ms()).describe
        works = Works(
            jobs,
            dispatch,
            StationSettings(core.store, settings_kinds(), dedupe_ms, recipe_checks(), recorders),
            users,
            settings_file,
            describe,
        )
        await open_features(stack, core, works)
        await _open_background_work(stack, core, jobs, dispatch)
        calls = _open_calls(core, works)
        opcua = await _open_opcua(stack, core, works)
        if settings.mqtt.url:
            await _open_northbound(stack, core, calls)
        await serve_features(stack, core, works)
        sidecars = await _open_rpc(stack, core, calls)
        measured = await _open_metrics(stack, core, opcua)
        serving = summary_of(core, opcua, sidecars, measured)
        await core.keep_running(stack, "equipment watch", core.watch.run)
        await core.keep_running(stack, "store watch", core.health.servers.run)
        await join_plant(stack, core, describe)
        await core.keep_running(stack, "operations", functools.partial(run_operations, core))
        await enter(background_task(feed_watchdog(notify, core.store.heartbeat.stalled), "watchdog"))
        # Last, without a wait before READY=1: that is the first report.
        await core.keep_running(stack, "health", functools.partial(core.health.publish_status, notify, serving))
        yield OpenGateway(core.health.degraded_by(serving), core.store, core.clock)


async def _open_core(stack: contextlib.AsyncExitStack, settings: Settings, memory: GatewayMemory) -> GatewayParts:
    store = await stack.enter_async_context(open_store(settings.redis, settings.gateway.name, memory.jobs_clock))
    scopes, keep = settings.gateway.scopes, settings.retention
    store.heartbeat.expect((*_CRITICAL, *map(publish_task_name, scopes)))
    # Before any session opens: a broker would disconnect the session of another gateway with this name.
    instance = await stack.enter_async_context(open_instance(store, scopes))
    await memory.accepted_jobs.report_lost(store)
    trail = await stack.enter_async_context(
        open_trail(store, settings.gateway.name, keep.audit, now_ms, memory.audit_records)
    )
    mode = ModeWatch(store, settings.gateway.name)
    await mode.refresh()
    await stack.enter_async_context(background_task(mode.run(), "mode"))
    store_time = StoreTime(store)
    await store_time.refresh()
    clock = SteadyClock(store_time)
    runs = Runs(
        store,
        clock,
        keep.ended_jobs * 1000,
        keep_letters_ms=keep.dead_letters * 1000,
        most_decisions=keep.decisions,
        second_person=second_person(settings.users),
        own_starts=memory.own_starts,
    )
    instance.lease_regained.append(runs.invalidate_all)
    active_runs = ActiveRuns(runs, scopes)
    watch = EquipmentWatch(store, active_runs, clock)
    limits = CountLimits(scopes, keep.marks, keep.undelivered_jobs)
    health = Health(store, active_runs, watch, functools.partial(_certificate_findings, settings), limits=limits)
    clocks = (store_time.problems, functools.partial(clock.problems, store))
    health.problems += [store.defects.problems, *clocks, memory.accepted_jobs.problems]
    direct = DirectCommands(runs)
    return GatewayParts(
        settings, store, instance, runs, active_runs, watch, health, clock, store_time, direct, trail, mode
    )


async def _open_equipment(stack: contextlib.AsyncExitStack, core: GatewayParts) -> None:
    southbound, runs = core.settings.southbound, core.runs
    # Messages over a broker can be recorded there.
    traffic = TrafficPublisher(
        core.store, [name for name, equipment_settings in southbound.items() if not _is_at_broker(equipment_settings)]
    )
    await stack.enter_async_context(traffic.publishing())
    result_files = core.ports.get("traces")
    # Among several scopes nothing says which one a removed job had.
    scope = core.scopes[0] if len(core.scopes) == 1 else ""
    for name, section in southbound.items():
        dedupe_ms = core.settings.retention.dedupe * 1000
        answers = Answers(
            core.store, runs, dedupe_ms, section.type_ids, core.direct_commands, result_files, name, scope
        )
        answers.listeners.append(traffic.of(name))
        equipment = await _open_one(stack, core, name, section, answers)
        core.watch.watched.append(WatchedEquipment(equipment, section.kind, section.type_ids, answers.stats))


def _is_at_broker(section: EquipmentSettings) -> bool:
    return isinstance(section, MqttEquipmentSettings)


async def _open_one(
    stack: contextlib.AsyncExitStack, core: GatewayParts, name: str, section: EquipmentSettings, answers: Answers
) -> EquipmentPort:
    if not isinstance(section, MqttEquipmentSettings):
        # asyncua is imported only where it is used.
        opener = pkgutil.resolve_name(equipment_kinds()[section.kind].opener)
        further = next((item.equipment[section.kind] for item in core.opened if section.kind in item.equipment), ())
        opened: EquipmentPort = await stack.enter_async_context(opener(name, section, answers, core.scopes, *further))
        return opened
    broker = broker_settings(section, core.settings.mqtt)
    if not broker.url:
        raise SettingsError(
            [Text.of("southbound.{name}: has no broker", name=name)], "Set its url, or the url of [mqtt]."
        )
    session = core.health.sessions[name] = await open_session(stack, core, name, broker, _LARGEST_OF_EQUIPMENT)
    equipment = await open_equipment(name, section, session, answers, core.scopes, core.source)
    await core.keep_running(stack, f"offers to {name}", equipment.keep_offering)
    return equipment


async def _open_background_work(
    stack: contextlib.AsyncExitStack, core: GatewayParts, jobs: JobService, dispatch: Dispatch
) -> None:
    """Start the background tasks that decide, for as long as this instance holds its lease."""
    store, runs, scopes = core.store, core.runs, core.scopes
    expiry = Expiry(store, core.retention)
    timers = Timers(store, runs, expiry=expiry)
    jobs.listeners.append(timers.expect)
    safing = SafingSender(runs, scopes, dispatch.routes, core.clock)
    core.watch.open_safing = safing.open_at
    mirrors = mirrored_sets(core.settings)
    worker = Worker(store, scopes, runs, Starter(store, runs, dispatch, core.mode, mirrors))
    works: tuple[tuple[str, TaskFactory], ...] = (
        ("sender", Sender(runs, dispatch).run),
        ("safing", safing.run),
        ("worker", worker.run),
        ("timers", timers.run),
        ("take-over", TakeOver(store, scopes, core.instance, runs, worker).run),
        ("kept jobs", KeptJobs(store, scopes, runs, expiry, core.clock).run),
        (
            "clock",
            functools.partial(follow_reference_clock, core.clock, store, refresh=core.store_time.settle),
        ),
        ("start sweep", StartSweep(store, scopes, core.clock, worker.claimed, mode=core.mode).run),
        ("locks", functools.partial(keep_swept, store)),
        ("marks", functools.partial(dedupe.keep_swept, store, core.retention.dedupe_ms)),
        ("locks of jobs", LockSweep(runs, core.active_runs).run),
        ("maintenance pause", MaintenancePause(runs, core.active_runs.loaded, core.mode).run),
        *((("mirrors of conditions", MirrorWatch(runs, core.active_runs, mirrors).run),) if mirrors else ()),
    )
    for name, work in works:
        await core.keep_running_while(stack, core.instance.lease_held, name, work)
    # Runs in progress are shown from the start.
    await core.active_runs.look()
    await core.keep_running(stack, "active runs", core.active_runs.follow)


def _open_calls(core: GatewayParts, works: Works) -> CallHandler:
    settings = core.settings
    services = CallServices(
        works.jobs,
        works.settings,
        equipment={name: section.type_ids for name, section in settings.southbound.items()},
        deliveries=Deliveries(core.store, core.clock, core.retention),
        further={
            **operation_calls(core),
            **{type_: call for opened in core.opened for type_, call in opened.calls.items()},
        },
        switched_off=calls_switched_off(core),
    )
    max_age_s = settings.northbound.max_age
    return CallHandler(core.source, core.scopes, core.store, services, core.store_time.host_ms, max_age_s, core.trail)


async def _open_opcua(stack: contextlib.AsyncExitStack, core: GatewayParts, works: Works) -> ServedOpcua | None:
    if not core.settings.opcua.endpoint:
        return None
    # asyncua takes half a second to import.
    from edge.app.opcua import OpcuaService  # noqa: PLC0415

    service = OpcuaService(core, works)
    await service.open(stack)
    return service


async def _open_rpc(stack: contextlib.AsyncExitStack, core: GatewayParts, calls: CallHandler) -> str:
    if not core.settings.rpc.listen:
        return ""
    # Imported only when sidecars are served.
    from edge.northbound.rpc import open_rpc  # noqa: PLC0415

    settings, version = core.settings.rpc, core.settings.northbound.event_version
    opener = functools.partial(
        open_rpc, settings, core.store, core.runs, calls, core.source, core.scopes, version=version
    )
    return await open_interface(stack, "RPC server", opener, core.health.interface_problems, core.store.defects)


async def _open_metrics(stack: contextlib.AsyncExitStack, core: GatewayParts, opcua: ServedOpcua | None) -> str:
    if not core.settings.metrics.listen:
        return ""
    # Imported only when metrics are on.
    from edge.app.metrics import PATH, MetricSources, page  # noqa: PLC0415

    activity = Activity()
    core.runs.listeners.append(activity.watch)
    sessions = None if opcua is None else lambda: opcua.sessions
    name = core.settings.gateway.name
    further = [read for opened in core.opened for read in opened.metrics]
    sources = MetricSources(name, core.scopes, core.store, core.health, core.watch, activity, sessions, further)
    render = functools.partial(page, sources)
    opener = functools.partial(serve_page, core.settings.metrics.listen, PATH, render)
    return await open_interface(stack, "metrics page", opener, core.health.interface_problems, core.store.defects)


async def _open_northbound(stack: contextlib.AsyncExitStack, core: GatewayParts, calls: CallHandler) -> None:
    settings = core.settings
    session = core.health.sessions["MES"] = await open_session(stack, core, "", settings.mqtt, MAXIMUM_PACKET_SIZE)
    topics = {scope: Topics(settings.northbound.topic_prefix, scope) for scope in core.scopes}
    for scope, gate in core.instance.publisher_gates.items():
        lifetime_s = settings.retention.retained_topics
        publisher = Publisher(
            core.store, session, core.source, topics[scope], lifetime_s, now_ms, policy=core.retention
        )
        core.health.refusals.append(publisher.refused)
        progress = ProgressPublisher(
            session,
            core.source,
            topics[scope],
            settings.northbound.progress,
            version=settings.northbound.event_version,
        )
        core.runs.listeners.append(progress.watch)
        await core.keep_running(stack, f"publish progress of {scope}", progress.run)
        late = LateResultPublisher(core.store, session, core.source, topics[scope])
        await core.keep_running_while(stack, gate, f"late results of {scope}", late.run)
        await core.keep_running_while(stack, gate, f"publisher of {scope}", publisher.run)
    northbound = settings.northbound
    inbox = Inbox(
        session,
        calls,
        northbound.topic_prefix,
        northbound.response_topics,
        lambda: core.store_time.server_ahead_ms,
    )
    core.health.problems.append(inbox.problems)
    await inbox.open(topics)


def _certificate_findings(settings: Settings) -> Iterable[HealthFinding]:
    """Return a finding for every certificate of the gateway. Raises SettingsError when one cannot be read."""
    if not settings.opcua.endpoint and not settings.certificate_hosts and not settings.tls_files:
        return ()
    # Imported only when there are certificates.
    from edge.app.certificate_lifetimes import certificates_of  # noqa: PLC0415

    return certificates_of(settings)
