"""Opens flows: their node kinds, the calls of the MES, what OPC UA clients see, and the engine."""

import contextlib
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from edge.app.component import ComponentPart
from edge.app.feature import Opened
from edge.app.parts import GatewayParts, Works
from edge.features.flows.calls import serve_calls
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.engine import FlowStats
from edge.features.flows.nodes.registry import NodeKinds
from edge.features.flows.plan import Plans
from edge.features.flows.plugins import load_usable_kinds
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.service import open_flows
from edge.features.flows.settings import FlowsSettings
from edge.model.plant import PluginState

if TYPE_CHECKING:
    from prometheus_client.core import Metric

    from edge.features.flows.opcua_feed import FlowFeed

_NS_PER_MS = 1_000_000


class FlowsPort(Struct, frozen=True):
    """What others use of flows: the node kinds, the flows as people change them, what OPC UA clients see."""

    kinds: NodeKinds
    service: FlowService
    feed: "FlowFeed | None"


async def prepare_flows(_stack: contextlib.AsyncExitStack, core: GatewayParts) -> Opened:
    """Load the node kinds that can be imported, before any work begins."""
    kinds = await load_usable_kinds(core.settings.section(FlowsSettings).nodes)

    def clock() -> int:
        return core.store_time() // _NS_PER_MS

    service = FlowService(RedisFlowState(core.store), Plans(kinds), clock)
    of_site = tuple(
        PluginState(name=name, kind="node kind", state="loaded")
        for name, kind in sorted(kinds.items())
        if kind.in_worker
    )

    async def describe() -> ComponentPart:
        return ComponentPart(plugins=of_site)

    return Opened(port=FlowsPort(kinds, service, _feed(core, service)), described=(describe,))


def _feed(core: GatewayParts, service: FlowService) -> "FlowFeed | None":
    if not core.settings.opcua.endpoint:
        return None
    # Imported only when OPC UA is on.
    from edge.features.flows.opcua_feed import FlowFeed  # noqa: PLC0415

    return FlowFeed(RedisFlowState(core.store), service, core.store.defects)


async def open_flow_calls(_stack: contextlib.AsyncExitStack, core: GatewayParts, _works: Works) -> Opened:
    """Return the calls with which the MES reads and changes flows."""
    flows: FlowsPort = core.ports["flows"]
    return Opened(calls=serve_calls(core, flows.kinds).table)


async def run_flows(stack: contextlib.AsyncExitStack, core: GatewayParts, works: Works) -> Opened:
    """Run the flows of the store until the stack closes."""
    flows: FlowsPort = core.ports["flows"]
    listeners = [flows.feed.show] if flows.feed else []
    stats = await open_flows(stack, core, works.jobs, core.ports.get("telemetry"), flows.kinds, listeners)

    async def read_metrics() -> "Sequence[Metric]":
        return _metrics(stats)

    return Opened(metrics=(read_metrics,))


def _metrics(stats: FlowStats) -> "Sequence[Metric]":
    # Imported only where metrics are read.
    from edge.features.flows.metrics import flow_metrics  # noqa: PLC0415

    return list(flow_metrics(stats))
