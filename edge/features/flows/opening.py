"""Opens the parts that serve flows; their modules are imported only when the settings switch flows on."""

import contextlib
from typing import TYPE_CHECKING

from edge.app.parts import GatewayParts
from edge.config import Settings
from edge.station.jobs import JobService

if TYPE_CHECKING:
    from edge.features.flows.calls import FlowCalls
    from edge.features.flows.cycle_service import FlowService
    from edge.features.flows.engine import FlowStats
    from edge.features.flows.nodes.registry import NodeKinds
    from edge.features.flows.opcua_feed import FlowFeed
    from edge.features.telemetry.service import TelemetryService

_NS_PER_MS = 1_000_000


async def load_node_kinds(settings: Settings) -> "NodeKinds | None":
    """Return the node kinds that can be imported, before any work begins; None when flows are off."""
    if settings.flows.run == "off":
        return None
    # Imported only when flows are on.
    from edge.features.flows.plugin_check import load_usable_kinds  # noqa: PLC0415

    return await load_usable_kinds(settings.flows.nodes)


def serve_flow_calls(core: GatewayParts, kinds: "NodeKinds | None") -> "FlowCalls | None":
    """Return the flows of the store as the MES changes them; None when flows are off."""
    if kinds is None:
        return None
    # Imported only when flows are on.
    from edge.features.flows.call_services import serve_calls  # noqa: PLC0415

    return serve_calls(core, kinds)


def open_flow_feed(core: GatewayParts, kinds: "NodeKinds | None") -> "FlowFeed | None":
    """Return the flows of the store as OPC UA clients see them; None when flows or OPC UA are off."""
    service = open_flow_service(core, kinds) if core.settings.opcua.endpoint else None
    if service is None:
        return None
    # Imported only when flows and OPC UA are on.
    from edge.features.flows.opcua_feed import FlowFeed  # noqa: PLC0415
    from edge.features.flows.redis_state import RedisFlowState  # noqa: PLC0415

    return FlowFeed(RedisFlowState(core.store), service, core.store.defects)


def open_flow_service(core: GatewayParts, kinds: "NodeKinds | None") -> "FlowService | None":
    """Return the flows of the store as people and programs change them; None when flows are off."""
    if kinds is None:
        return None
    # Imported only when flows are on.
    from edge.features.flows.cycle_service import FlowService  # noqa: PLC0415
    from edge.features.flows.plans import Plans  # noqa: PLC0415
    from edge.features.flows.redis_state import RedisFlowState  # noqa: PLC0415

    def clock() -> int:
        return core.store_time() // _NS_PER_MS

    return FlowService(RedisFlowState(core.store), Plans(kinds), clock)


async def run_flows(
    stack: contextlib.AsyncExitStack,
    core: GatewayParts,
    jobs: JobService,
    telemetry: "TelemetryService | None",
    kinds: "NodeKinds | None",
    feed: "FlowFeed | None",
) -> "FlowStats | None":
    """Run the flows of the store; return what is counted, None when flows are off."""
    if kinds is None:
        return None
    # Imported only when flows are on.
    from edge.features.flows.service import open_flows  # noqa: PLC0415

    return await open_flows(stack, core, jobs, telemetry, kinds, [feed.show] if feed else ())
