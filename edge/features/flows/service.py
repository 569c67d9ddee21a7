"""Opens the flows of a gateway; imported only when the settings switch them on."""

import contextlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from edge.app.parts import GatewayParts
from edge.features.flows.cleanup import keep_clean
from edge.features.flows.engine import FlowEngine, FlowStats
from edge.features.flows.equipment import opcua_handlers
from edge.features.flows.nodes.act import AppendToFile, CommandEquipment, PostResource, PublishMessage, StartJob
from edge.features.flows.nodes.read import HttpResource, JobResults, RedisValue
from edge.features.flows.nodes.registry import NodeKinds
from edge.features.flows.plan import Plans
from edge.features.flows.ports.append import FileAppender
from edge.features.flows.ports.broker import MessagePublisher
from edge.features.flows.ports.command import EquipmentCommander
from edge.features.flows.ports.foreign_value import read_key
from edge.features.flows.ports.jobs import JobStarter, ResultReader
from edge.features.flows.ports.table import Handler, HandlerTable
from edge.features.flows.ports.web import get_resource, post_resource
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.runner import RunnerContext
from edge.features.flows.settings import FlowsSettings
from edge.features.flows.state import CycleRecord, FlowRecord
from edge.station.jobs import JobService
from edge.store import instance_leases

if TYPE_CHECKING:
    from edge.features.telemetry.service import TelemetryService

_NS_PER_MS = 1_000_000


async def open_flows(
    stack: contextlib.AsyncExitStack,
    core: GatewayParts,
    jobs: JobService,
    telemetry: "TelemetryService | None",
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
        # Imported only when telemetry is on.
        from edge.features.flows.live_tags import record_tags, tag_handlers  # noqa: PLC0415

        handlers |= await tag_handlers(stack, core, telemetry.volatile)
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
