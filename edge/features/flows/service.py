"""Opens flows: their node kinds, the calls of the MES, what OPC UA clients see, and the engine."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from msgspec import Struct

from edge.app.component import ComponentPart
from edge.app.feature import Opened
from edge.app.feature_ports import Telemetry
from edge.app.parts import GatewayParts, Works
from edge.config import OpcuaEquipmentSettings, Settings
from edge.features.flows.calls import serve_calls
from edge.features.flows.cleanup import keep_clean
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.engine import FlowEngine, FlowStats
from edge.features.flows.nodes.outside import (
    AppendToFile,
    CommandEquipment,
    HttpResource,
    JobResults,
    PostResource,
    PublishMessage,
    RedisValue,
    StartJob,
    VariableValue,
    WriteVariable,
)
from edge.features.flows.nodes.registry import NodeKinds
from edge.features.flows.opcua_feed import FlowFeed
from edge.features.flows.plan import Plans
from edge.features.flows.plugins import load_usable_kinds
from edge.features.flows.ports.append import FileAppender
from edge.features.flows.ports.broker import MessagePublisher
from edge.features.flows.ports.command import EquipmentCommander
from edge.features.flows.ports.foreign_value import read_key
from edge.features.flows.ports.jobs import JobStarter, ResultReader
from edge.features.flows.ports.table import Handler, HandlerTable
from edge.features.flows.ports.tags import record_tags, tag_handlers
from edge.features.flows.ports.web import get_resource, post_resource
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.runner import RunnerContext
from edge.features.flows.settings import FlowsSettings
from edge.features.flows.state import CycleRecord, FlowRecord
from edge.model.plant import PluginState
from edge.station.jobs import JobService
from edge.store import instance_leases


async def opcua_handlers(stack: contextlib.AsyncExitStack, settings: Settings) -> dict[type, Handler]:
    """Return the handlers of OPC UA variables; none without OPC UA equipment."""
    sections = {
        name: equipment_settings
        for name, equipment_settings in settings.southbound.items()
        if isinstance(equipment_settings, OpcuaEquipmentSettings)
    }
    if not sections:
        return {}
    from edge.features.flows.ports.variables import VariableClient  # noqa: PLC0415 - asyncua, only for OPC UA

    client = VariableClient(sections)
    stack.push_async_callback(client.close)
    return {VariableValue: client.read, WriteVariable: client.write}


_NS_PER_MS = 1_000_000


async def open_flows(
    stack: contextlib.AsyncExitStack,
    core: GatewayParts,
    jobs: JobService,
    telemetry: Telemetry | None,
    kinds: NodeKinds,
    listeners: Sequence[Callable[[FlowRecord, CycleRecord], None]] = (),
) -> FlowStats:
    """Run the flows of the store for as long as this instance holds its lease; return what is counted.

    `listeners` are called with each flow whose cycle has begun or ended here.

    Without telemetry no node reads or writes tags, or raises alarms.
    """
    store = core.store

    def clock() -> int:
        return core.store_time() // _NS_PER_MS

    async def is_gone(owner: str) -> bool:
        return owner in await instance_leases.read_ended(store, (owner,))

    state, plans = RedisFlowState(store), Plans(kinds)
    handlers = _handlers(core, jobs) | await opcua_handlers(stack, core.settings)
    if telemetry is not None:
        handlers |= await tag_handlers(stack, core, telemetry)
        await core.keep_running(stack, "tags of flows", partial(record_tags, state, plans, telemetry.interest))
    context = RunnerContext(
        state=state,
        outside=HandlerTable(handlers),
        plans=plans,
        clock=clock,
        owner=store.consumer,
        kept_cycles=core.settings.section(FlowsSettings).kept_cycles,
        kept_bytes=core.settings.section(FlowsSettings).kept_mb << 20,
        store_fullness=lambda: core.health.memory.fullness,
        measure_clock=core.store_time.refresh,
    )
    engine = FlowEngine(context, is_gone, may_begin=lambda: core.mode.in_force is None)
    engine.listeners.extend(listeners)
    await core.keep_running_while(stack, core.instance.lease_held, "flows", engine.run)
    await core.keep_running(stack, "flow clean-up", partial(keep_clean, store))
    return engine.stats


def _handlers(core: GatewayParts, jobs: JobService) -> dict[type, Handler]:
    """Return what every gateway serves; MQTT only with a broker."""
    files = FileAppender(Path(core.settings.section(FlowsSettings).directory), core.clock)
    commander = EquipmentCommander(core.direct_commands, core.store.keys, core.watch.watched, core.scopes[0])
    handlers: dict[type, Handler] = {
        JobResults: ResultReader(core.store, core.scopes).read,
        HttpResource: get_resource,
        PostResource: post_resource,
        RedisValue: read_key,
        StartJob: JobStarter(jobs, core.scopes, core.source).start,
        AppendToFile: files.append,
        CommandEquipment: commander.command,
    }
    if session := core.health.sessions.get("MES"):
        handlers[PublishMessage] = MessagePublisher(session).publish
    return handlers


class FlowsPort(Struct, frozen=True):
    """What others use of flows: the node kinds, the flows as people change them, what OPC UA clients see."""

    kinds: NodeKinds
    service: FlowService
    feed: FlowFeed


async def prepare_flows(_stack: contextlib.AsyncExitStack, core: GatewayParts) -> Opened:
    """Load the node kinds that can be imported, before any work begins."""
    kinds = await load_usable_kinds(core.settings.section(FlowsSettings).nodes)

    def clock() -> int:
        return core.store_time() // _NS_PER_MS

    state = RedisFlowState(core.store)
    service = FlowService(state, Plans(kinds), clock)
    feed = FlowFeed(state, service, core.store.defects)
    of_site = tuple(
        PluginState(name=name, kind="node kind", state="loaded")
        for name, kind in sorted(kinds.items())
        if kind.in_worker
    )

    async def describe() -> ComponentPart:
        return ComponentPart(plugins=of_site)

    return Opened(port=FlowsPort(kinds, service, feed), described=(describe,))


async def open_flow_calls(_stack: contextlib.AsyncExitStack, core: GatewayParts, _works: Works) -> Opened:
    """Return the calls with which the MES reads and changes flows."""
    flows: FlowsPort = core.ports["flows"]
    return Opened(calls=serve_calls(core, flows.kinds).table)


async def run_flows(stack: contextlib.AsyncExitStack, core: GatewayParts, works: Works) -> Opened:
    """Run the flows of the store until the stack closes."""
    flows: FlowsPort = core.ports["flows"]
    listeners = [flows.feed.show] if core.settings.opcua.endpoint else []
    stats = await open_flows(stack, core, works.jobs, core.ports.get("telemetry"), flows.kinds, listeners)
    return Opened(metrics=(stats.metrics,))
