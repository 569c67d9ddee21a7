"""A cycle runs its nodes according to the plan and repeats no action after a failure of the gateway."""

from typing import Any

import pytest

from edge.features.flows.cycle import CycleStatus, NodeStatus
from edge.features.flows.state import FlowChange
from edge.foundation.errors import Unavailable
from tests.features.flows.documents import flow, node
from tests.features.flows.gateways import CHAIN, REFUSED, UNKNOWN, FakeOutside, Plant, reasons, statuses
from tests.features.flows.memory_state import MemoryFlowState


class CountingState(MemoryFlowState):
    """Counts commits; the reply to those of `lost` is lost, though they were written."""

    def __init__(self) -> None:
        super().__init__()
        self.commits: list[FlowChange] = []
        self.lost: set[int] = set()

    async def commit(self, change: FlowChange) -> bool:
        """Write a change."""
        written = await super().commit(change)
        self.commits.append(change)
        if len(self.commits) in self.lost:
            raise Unavailable("the reply was lost")
        return written


def once(nodes: list[dict[str, Any]], edges: str = "", **members: Any) -> dict[str, Any]:
    """Return a flow of one cycle."""
    return flow(nodes, edges, interval_seconds=0, **members)


async def test_chain_of_read_compute_and_action_completes(plant: Plant, outside: FakeOutside) -> None:
    async with plant.gateway(outside=outside):
        await plant.run(CHAIN)
        record = await plant.ended()
    assert record.cycle.status is CycleStatus.COMPLETED
    assert outside.actions == [("flow_0_send", 42)]
    assert record.cycle.tasks["send"].output == {"topic": "x"}
    flow_record = await plant.service.load("flow")
    assert (flow_record.status.value, flow_record.ended, flow_record.next_at) == (
        "completed",
        {CycleStatus.COMPLETED: 1},
        None,
    )


async def test_compute_nodes_of_a_cycle_share_one_commit() -> None:
    state = CountingState()
    plant = Plant(state)
    nodes = [
        node("a", "constant", value=1),
        node("b", "expression", expr="a + 1"),
        node("c", "expression", expr="b + 1"),
    ]
    async with plant.gateway():
        await plant.run(once(nodes, "a>b b>c"))
        record = await plant.ended()
    assert record.cycle.tasks["c"].output == 3
    # Registration, start, and the whole cycle.
    assert len(state.commits) == 3


async def test_action_node_is_committed_as_running_before_its_action(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run(CHAIN)
        outside.release()
        await plant.ended()
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run({**CHAIN, "id": "second"})
        record = await plant.at("read", flow_id="second")
        assert statuses(record) == {"read": "running", "double": "registered", "send": "registered"}
        outside.release()
        await plant.ended("second")


async def test_independent_nodes_run_at_the_same_time(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run(once([node("a", "tag.latest", tag="a"), node("b", "tag.latest", tag="b")]))
        record = await plant.at("b")
        assert statuses(record) == {"a": "running", "b": "running"}
        outside.release()
        assert (await plant.ended()).cycle.status is CycleStatus.COMPLETED


async def test_failed_node_skips_its_dependents_only(plant: Plant, outside: FakeOutside) -> None:
    outside.fail = REFUSED
    nodes = [node("a", "tag.latest", tag="a"), node("b", "delay", seconds=0), node("c", "constant", value=1)]
    async with plant.gateway(outside=outside):
        await plant.run(once(nodes, "a>b"))
        record = await plant.ended()
    assert record.cycle.status is CycleStatus.FAILED
    assert statuses(record) == {"a": "failed", "b": "skipped", "c": "completed"}
    assert reasons(record) == {"a": "not allowed", "b": "dependency_failed"}


@pytest.mark.parametrize(("times", "status"), [(2, CycleStatus.COMPLETED), (3, CycleStatus.FAILED)])
async def test_failed_attempts_are_retried(plant: Plant, times: int, status: CycleStatus) -> None:
    async with plant.gateway():
        await plant.run(once([{**node("a", "fail", times=times), "retries": 2}]))
        record = await plant.ended()
    assert record.cycle.status is status
    assert record.cycle.tasks["a"].attempts == 3


async def test_attempt_beyond_its_timeout_fails(plant: Plant) -> None:
    nodes = [node("a", "constant", value=1), {**node("b", "delay", seconds=60), "timeout_seconds": 0.01, "retries": 1}]
    async with plant.gateway():
        await plant.run(once(nodes, "a>b"))
        record = await plant.ended()
    assert reasons(record) == {"b": "timeout"}
    assert record.cycle.tasks["b"].attempts == 2


async def test_action_of_unknown_outcome_is_not_repeated(plant: Plant, outside: FakeOutside) -> None:
    outside.fail = UNKNOWN
    nodes = [node("a", "constant", value=1), {**node("b", "mqtt.publish", topic="x"), "retries": 5}]
    async with plant.gateway(outside=outside):
        await plant.run(once(nodes, "a>b"))
        record = await plant.ended()
    assert reasons(record) == {"b": "interrupted"}
    assert len(outside.actions) == 1


async def test_action_beyond_its_timeout_is_not_repeated(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    act = {**node("b", "mqtt.publish", topic="x"), "retries": 5, "timeout_seconds": 0.01}
    async with plant.gateway(outside=outside):
        await plant.run(once([node("a", "constant", value=1), act], "a>b"))
        record = await plant.ended()
    assert reasons(record) == {"b": "interrupted"}
    assert len(outside.actions) == 1


@pytest.mark.parametrize("lost", range(2, 7))
async def test_lost_reply_to_a_commit_repeats_no_action(lost: int) -> None:
    """The commit was written, the gateway does not know."""
    state, outside = CountingState(), FakeOutside()
    plant = Plant(state)
    await plant.run(CHAIN)
    state.lost = {lost + 1}
    async with plant.gateway(outside=outside):
        record = await plant.ended()
    assert len(outside.actions) <= 1
    assert record.cycle.status is CycleStatus.COMPLETED or reasons(record) == {"send": "interrupted"}


async def test_terminated_node_is_cancelled(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run(CHAIN)
        await plant.at("read")
        await plant.service.terminate("flow", "not today", node="read")
        record = await plant.ended()
    assert record.cycle.status is CycleStatus.TERMINATED
    assert reasons(record) == {"read": "not today", "double": "dependency_failed", "send": "dependency_skipped"}
    assert outside.actions == []


async def test_stopped_component_starts_no_further_node(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    other = node("other", "tag.latest", tag="o")
    document = {**CHAIN, "nodes": [*CHAIN["nodes"], other]}
    async with plant.gateway(outside=outside):
        await plant.run(document)
        await plant.at("other")
        await plant.service.stop_component("flow", 0)
        outside.release()
        record = await plant.ended()
    assert statuses(record) == {"read": "completed", "double": "skipped", "send": "skipped", "other": "completed"}
    assert reasons(record)["double"] == "component_stopped"


async def test_replaced_flow_ends_its_cycle_with_the_old_document(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run(CHAIN)
        await plant.at("read")
        await plant.service.put(once([node("a", "constant", value=1)]))
        outside.release()
        record = await plant.ended()
    assert record.cycle.tasks["send"].status is NodeStatus.COMPLETED
    assert '"a"' in (await plant.service.load("flow")).document


async def test_deleted_flow_cancels_its_cycle(plant: Plant, outside: FakeOutside) -> None:
    outside.hold()
    async with plant.gateway(outside=outside):
        await plant.run(CHAIN)
        await plant.at("read")
        await plant.service.delete("flow")
        # The gateway works on.
        outside.release()
        await plant.run({**CHAIN, "id": "second"})
        await plant.ended("second")
    assert outside.actions == [("second_0_send", 42)]
