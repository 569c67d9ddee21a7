"""Connects the calls of the MES for flows to the store; imported only when the settings switch flows on."""

from edge.app.parts import GatewayParts
from edge.features.flows.calls import FlowCalls
from edge.features.flows.cycle_service import FlowService
from edge.features.flows.nodes.registry import NodeKinds
from edge.features.flows.plans import Plans
from edge.features.flows.redis_state import RedisFlowState
from edge.store.commit import Commit

_NS_PER_MS = 1_000_000


def serve_calls(core: GatewayParts, kinds: NodeKinds) -> FlowCalls:
    """Return the handler of the calls with which the MES reads and changes flows."""

    def clock() -> int:
        return core.store_time() // _NS_PER_MS

    plans = Plans(kinds)

    def service_with(also: Commit) -> FlowService:
        return FlowService(RedisFlowState(core.store, also), plans, clock)

    return FlowCalls(service_with, core.store, core.settings.retention.dedupe * 1000)
