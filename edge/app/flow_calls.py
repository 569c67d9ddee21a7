"""Serves the calls of the MES for flows; imported only when the settings switch flows on."""

from edge.app.parts import GatewayParts
from edge.flows.plans import Plans
from edge.flows.plugin_check import load_usable_kinds
from edge.flows.redis_state import RedisFlowState
from edge.flows.service import FlowService
from edge.northbound.flow_calls import FlowCalls

_NS_PER_MS = 1_000_000


async def serve_calls(core: GatewayParts) -> FlowCalls:
    """Return the flows of the store as the MES changes them; faulty kinds of the site are left out."""

    def clock() -> int:
        return core.store_time() // _NS_PER_MS

    plans = Plans(await load_usable_kinds(core.settings.flows.nodes))
    service = FlowService(RedisFlowState(core.store), plans, clock)
    return FlowCalls(service, core.store, core.settings.retention.dedupe * 1000)
