"""The status of a flow has its cycle, its nodes and their number by state."""

import json

from edge.features.flows.plans import Plans
from edge.features.flows.view import flow_status
from tests.features.flows.gateways import CHAIN, Plant


async def test_status_has_flow_cycle_and_node_details(plant: Plant) -> None:
    async with plant.gateway():
        await plant.run(CHAIN)
        record = await plant.ended()
    found = await plant.service.load("flow")
    shown = flow_status(found, Plans().of(found.document), record)
    assert json.loads(json.dumps(shown))["config"] == CHAIN
    assert (shown["status"], shown["last_cycle"], shown["ended"]) == ("completed", 0, {"completed": 1})
    assert shown["structure"]["entry_nodes"] == ("read",)
    cycle = shown["cycle"]
    assert (cycle["status"], cycle["owner"], cycle["nodes"]["double"]["output"]) == ("completed", "edge", 42)
    assert (cycle["statistics"]["total"], cycle["statistics"]["completed"], cycle["statistics"]["failed"]) == (3, 3, 0)


async def test_status_of_a_flow_that_never_ran_has_no_cycle(plant: Plant) -> None:
    await plant.service.put(CHAIN)
    found = await plant.service.load("flow")
    shown = flow_status(found, Plans().of("{}"), None)
    assert (shown["cycle"], shown["structure"]) == (None, None)
