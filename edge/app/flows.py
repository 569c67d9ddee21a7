"""Opens the flows of a gateway; imported only when the settings switch them on."""

import contextlib
from pathlib import Path

from edge.app.parts import GatewayParts
from edge.flows.engine import FlowEngine, FlowStats
from edge.flows.nodes.act import AppendToFile, PostResource, PublishMessage, StartJob
from edge.flows.nodes.read import HttpResource, JobResults
from edge.flows.plans import Plans
from edge.flows.plugins import load_kinds
from edge.flows.ports.append import FileAppender
from edge.flows.ports.broker import MessagePublisher
from edge.flows.ports.job import JobStarter
from edge.flows.ports.results import ResultReader
from edge.flows.ports.table import Handler, Handlers, HandlerTable
from edge.flows.ports.web import get_resource, post_resource
from edge.flows.redis_state import RedisFlowState
from edge.flows.runner import RunnerContext
from edge.links.background_task import background_task
from edge.station.jobs import JobService

_NS_PER_MS = 1_000_000


async def open_flows(stack: contextlib.AsyncExitStack, core: GatewayParts, jobs: JobService) -> FlowStats:
    """Run the flows of the store for as long as this instance holds its lease; return what is counted."""
    store = core.store

    def clock() -> int:
        return core.store_time() // _NS_PER_MS

    async def is_gone(owner: str) -> bool:
        return not await store.execute("EXISTS", store.keys.lease_instance(owner))

    context = RunnerContext(
        state=RedisFlowState(store),
        outside=HandlerTable(_handlers(core, jobs)),
        plans=Plans(load_kinds(core.settings.flows.nodes)),
        clock=clock,
        owner=store.consumer,
        kept_cycles=core.settings.flows.kept_cycles,
    )
    engine = FlowEngine(context, is_gone)
    while_present = core.instance.lease_held.run_while_open(engine.run, "flows")
    await stack.enter_async_context(background_task(while_present, "flows while present"))
    return engine.stats


def _handlers(core: GatewayParts, jobs: JobService) -> Handlers:
    """Return what this gateway serves; MQTT only with a broker."""
    files = FileAppender(Path(core.settings.flows.directory), core.clock)
    handlers: dict[type, Handler] = {
        JobResults: ResultReader(core.store, core.scopes).read,
        HttpResource: get_resource,
        PostResource: post_resource,
        StartJob: JobStarter(jobs, core.scopes, core.source).start,
        AppendToFile: files.append,
    }
    if session := core.health.sessions.get("MES"):
        handlers[PublishMessage] = MessagePublisher(session).publish
    return handlers
