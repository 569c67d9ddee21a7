"""The address space shows the flows of a store: own cycles at once, other changes at the next poll."""

import asyncio
from typing import Any

from edge.features.flows.cycle import CycleStatus
from edge.features.flows.flow_view import FlowView
from edge.features.flows.opcua_feed import FlowFeed, flow_view
from edge.features.flows.state import FlowRecord, FlowStatus
from edge.store.background import Defects
from tests.features.flows.gateways import CHAIN, Plant
from tests.features.flows.memory_state import MemoryFlowState


class FakeNodes:
    """Records what is shown."""

    def __init__(self) -> None:
        self.shown: dict[str, FlowView] = {}

    def show(self, flow_id: str, view: FlowView) -> None:
        self.shown[flow_id] = view

    def hide(self, flow_id: str) -> None:
        self.shown.pop(flow_id)

    async def notify_subscribers(self) -> None:
        await asyncio.Event().wait()


async def until(condition: Any) -> None:
    async with asyncio.timeout(60):
        while not condition():  # noqa: ASYNC110 - the feed has no event of its own
            await asyncio.sleep(0.01)


async def test_flows_of_the_store_are_shown_until_they_are_deleted() -> None:
    plant, nodes = Plant(MemoryFlowState()), FakeNodes()
    feed = FlowFeed(plant.state, plant.service, Defects(), look_every_s=0.01)
    running = asyncio.create_task(feed.run(nodes))
    await plant.service.put(CHAIN)
    await until(lambda: "flow" in nodes.shown)
    assert nodes.shown["flow"] == FlowView("registered")
    async with plant.gateway() as engine:
        engine.listeners.append(feed.show)
        await feed.start("flow")
        await until(lambda: nodes.shown["flow"].cycle_state == "completed")
    view = nodes.shown["flow"]
    assert (view.state, view.last_cycle, view.completed) == ("completed", 0, 1)
    assert view.duration_ms is not None
    await plant.service.delete("flow")
    await until(lambda: not nodes.shown)
    running.cancel()


async def test_cycles_of_another_gateway_are_shown() -> None:
    plant, nodes = Plant(MemoryFlowState()), FakeNodes()
    await plant.run(CHAIN)
    async with plant.gateway("other"):
        await plant.ended()
    running = asyncio.create_task(FlowFeed(plant.state, plant.service, Defects()).run(nodes))
    await until(lambda: "flow" in nodes.shown)
    assert nodes.shown["flow"].cycle_state == "completed"
    running.cancel()


async def test_server_that_starts_later_shows_all_flows() -> None:
    plant, nodes = Plant(MemoryFlowState()), FakeNodes()
    feed = FlowFeed(plant.state, plant.service, Defects())
    await plant.service.put(CHAIN)
    feed.show(await plant.service.load("flow"), None)
    running = asyncio.create_task(feed.run(nodes))
    await until(lambda: nodes.shown)
    running.cancel()


def test_stopped_flow_keeps_the_data_of_its_last_cycle() -> None:
    before = FlowView("running", last_cycle=3, cycle_state="completed", duration_ms=20)
    stopped = FlowRecord(
        flow_id="f",
        document="{}",
        created_at=1,
        status=FlowStatus.STOPPED,
        last_cycle=3,
        reason="night",
        ended={CycleStatus.COMPLETED: 4},
    )
    after = flow_view(stopped, None, before)
    assert (after.state, after.reason, after.cycle_state, after.duration_ms) == ("stopped", "night", "completed", 20)
    assert flow_view(stopped, None, None).cycle_state == ""
