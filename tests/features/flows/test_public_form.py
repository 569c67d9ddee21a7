"""The public form of a flow has its cycle and nodes."""

import pytest

from edge.features.flows.public_form import public_detail
from tests.features.flows.gateways import CHAIN, Plant
from tests.features.flows.memory_state import MemoryFlowState


@pytest.fixture
def plant() -> Plant:
    """Gateways on a state in memory."""
    return Plant(MemoryFlowState())


async def test_detail_has_flow_cycle_and_nodes(plant: Plant) -> None:
    async with plant.gateway():
        await plant.run(CHAIN)
        await plant.ended()
    detail = await public_detail(plant.service, "flow", None)
    assert detail.config == CHAIN
    flow = detail.flow
    assert (flow.status, flow.last_cycle, flow.ended) == ("completed", 0, {"completed": 1})
    assert detail.entry_nodes == ("read",)
    cycle = detail.cycle
    assert cycle
    assert (cycle.status, cycle.owner, [node.output for node in cycle.nodes][1]) == ("completed", "edge", 42)
    assert (cycle.statistics["total"], cycle.statistics["completed"], cycle.statistics["failed"]) == (3, 3, 0)


async def test_detail_of_a_flow_that_never_ran_has_no_cycle(plant: Plant) -> None:
    await plant.service.put(CHAIN)
    detail = await public_detail(plant.service, "flow", None)
    assert (detail.cycle, detail.cycles, detail.flow.last_cycle) == (None, (), None)
