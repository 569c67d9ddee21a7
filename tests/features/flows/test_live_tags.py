"""The tags of a flow are recorded from its registration, also when no rule uses them."""

import asyncio

from edge.features.flows.cycle_service import FlowService
from edge.features.flows.live_tags import record_tags, used_tags
from edge.features.flows.memory_state import MemoryFlowState
from edge.features.flows.plan import Plan, Plans, plan_flow
from edge.features.telemetry.interest import RuleInterest
from edge.ports.sample_lines import Sample
from tests.features.flows.documents import flow, node
from tests.station.plant import until_true


async def test_tags_are_recorded_while_their_flow_is_registered() -> None:
    state, plans, interest = MemoryFlowState(), Plans(), RuleInterest([])
    service = FlowService(state, plans, lambda: 0)
    await service.put(flow([node("a", "tag.latest", tag="x")]))
    following = asyncio.create_task(record_tags(state, plans, interest))
    await until_true(lambda: interest.tags_of_flows == {"x"})
    assert interest.wants(Sample(0, "x", 1))
    assert not interest.wants(Sample(0, "y", 1))
    await service.put(flow([node("a", "tag.window", tag="y", seconds=1)]))
    await until_true(lambda: interest.tags_of_flows == {"y"})
    await service.delete("flow")
    await until_true(lambda: interest.tags_of_flows == frozenset())
    following.cancel()


def test_tags_of_reading_and_writing_nodes_are_used() -> None:
    nodes = [
        node("a", "tag.latest", tag="x"),
        node("b", "tag.window", tag="y", seconds=1),
        node("c", "constant", value="z"),
        node("d", "tag.write", tag="w"),
    ]
    plan = plan_flow(flow(nodes, "a>d"))
    assert isinstance(plan, Plan), plan
    assert used_tags(plan) == {"x", "y", "w"}
