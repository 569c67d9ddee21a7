"""Every flow state implementation has the same contract: a decision is committed completely or not at all."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from msgspec.structs import replace as changed

from edge.config import RedisSettings
from edge.features.flows import keys as flows_keys
from edge.features.flows.cycle import Cycle, CycleStatus, NodeStatus, NodeTask
from edge.features.flows.node_task import QueuedTask, ResultKind, encode_result, result_of
from edge.features.flows.nodes.kind import Withheld
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, FlowState, FlowStatus, Written
from edge.store.open_store import open_store
from tests.features.flows.memory_state import MemoryFlowState

FLOW = FlowRecord(flow_id="a_1", document="{}", created_at=5, revision=5)
RUNNING = CycleRecord(
    cycle=Cycle("a_1", 0, 60_000, {"x": NodeTask(NodeStatus.RUNNING, attempts=1, started_at=9), "y": NodeTask()}),
    document="{}",
    owner="edge",
    started_at=60_001,
    revision=60_001,
)


@pytest_asyncio.fixture(params=["memory", "redis"])
async def state(request: pytest.FixtureRequest, redis: RedisSettings) -> AsyncIterator[FlowState]:
    """An empty flow state of each kind."""
    if request.param == "memory":
        yield MemoryFlowState()
    else:
        async with open_store(redis, "edge") as store:
            yield RedisFlowState(store)


def registered(flow: FlowRecord = FLOW) -> FlowChange:
    return FlowChange(Written(None, flow))


def moved(flow: FlowRecord, **members: object) -> FlowRecord:
    return changed(flow, revision=flow.revision + 1, **members)


async def test_flow_is_read_back_unchanged(state: FlowState) -> None:
    flow = changed(
        FLOW,
        status=FlowStatus.RUNNING,
        last_cycle=3,
        last_at=60_000,
        next_at=120_000,
        in_cycle=True,
        ended={CycleStatus.FAILED: 2},
        missed=7,
        memory={"c": {"value": [1, None]}},
        reason="night",
    )
    assert await state.commit(registered(flow))
    assert await state.load_flow("a_1") == flow
    assert await state.load_flow("a") is None


async def test_record_changed_by_another_writer_is_not_written(state: FlowState) -> None:
    assert await state.commit(registered())
    assert not await state.commit(registered())
    later = moved(FLOW, missed=1)
    assert await state.commit(FlowChange(Written(FLOW, later)))
    assert not await state.commit(FlowChange(Written(FLOW, moved(FLOW, missed=2)), Written(None, RUNNING)))
    assert await state.load_flow("a_1") == later
    assert await state.load_cycle(later, 0) is None


async def test_flow_is_not_written_after_a_concurrent_change_of_its_cycle(state: FlowState) -> None:
    assert await state.commit(FlowChange(Written(None, FLOW), Written(None, RUNNING)))
    assert not await state.commit(FlowChange(Written(FLOW, moved(FLOW, missed=1)), Written(None, RUNNING)))
    assert await state.load_flow("a_1") == FLOW


async def test_cycle_is_read_back_unchanged(state: FlowState) -> None:
    tasks = {
        "x": NodeTask(NodeStatus.COMPLETED, {"n": [1.5, "ü"]}, Withheld.SWITCH, None, 2, 9, 12, {"value": 1}),
        "y": NodeTask(NodeStatus.SKIPPED, reason="switch"),
        "z": NodeTask(),
    }
    cycle = changed(RUNNING, cycle=changed(RUNNING.cycle, tasks=tasks), ended_at=70_000, document="")
    assert await state.commit(FlowChange(Written(None, FLOW), Written(None, cycle)))
    assert await state.load_cycle(FLOW, 0) == cycle
    assert await state.load_cycle(FLOW, 1) is None


async def test_cycle_is_loaded_with_the_memory_of_its_flow(state: FlowState) -> None:
    flow = changed(FLOW, memory={"x": 1})
    cycle = changed(RUNNING, cycle=changed(RUNNING.cycle, memory={"x": 1}))
    assert await state.commit(FlowChange(Written(None, flow), Written(None, cycle)))
    assert await state.load_cycle(flow, 0) == cycle


@pytest.mark.parametrize("size", [65_534, 65_535, 300_000])
async def test_large_output_is_read_completely(state: FlowState, size: int) -> None:
    tasks = {"x": NodeTask(NodeStatus.COMPLETED, "v" * size, attempts=1), "y": NodeTask()}
    cycle = changed(RUNNING, cycle=changed(RUNNING.cycle, tasks=tasks))
    assert await state.commit(FlowChange(Written(None, FLOW), Written(None, cycle)))
    assert await state.load_cycle(FLOW, 0) == cycle


async def test_due_flows_are_ordered_by_due_time(state: FlowState) -> None:
    for name, at in (("b", 300), ("a", 200), ("c", None), ("d", 100)):
        assert await state.commit(registered(changed(FLOW, flow_id=name, next_at=at)))
    assert await state.flow_ids() == ["a", "b", "c", "d"]
    assert await state.due(200, 10) == ["d", "a"]
    assert await state.due(1000, 2) == ["d", "a"]
    assert await state.next_due() == 100
    flow = changed(FLOW, flow_id="d", next_at=100)
    assert await state.commit(FlowChange(Written(flow, moved(flow, next_at=None))))
    assert await state.next_due() == 200


async def test_state_without_flows_is_empty(state: FlowState) -> None:
    assert await state.flow_ids() == []
    assert await state.next_due() is None
    assert await state.running() == []


async def test_revisions_of_all_flows_are_listed(state: FlowState) -> None:
    assert await state.revisions() == {}
    other = changed(FLOW, flow_id="b", revision=7)
    assert await state.commit(registered(FLOW))
    assert await state.commit(registered(other))
    assert await state.revisions() == {"a_1": 5, "b": 7}


async def test_running_flows_are_listed(state: FlowState) -> None:
    busy = changed(FLOW, in_cycle=True)
    assert await state.commit(registered(busy))
    assert await state.running() == ["a_1"]
    assert await state.commit(FlowChange(Written(busy, moved(busy, in_cycle=False))))
    assert await state.running() == []


async def test_expired_cycle_is_removed(state: FlowState) -> None:
    assert await state.commit(FlowChange(Written(None, FLOW), Written(None, RUNNING)))
    second = changed(RUNNING, cycle=changed(RUNNING.cycle, number=1))
    assert await state.commit(FlowChange(cycle=Written(None, second), expired=(0,)))
    assert await state.load_cycle(FLOW, 0) is None
    assert await state.load_cycle(FLOW, 1) == second


async def test_deleted_flow_is_removed_with_its_cycles(state: FlowState) -> None:
    busy = changed(FLOW, in_cycle=True, next_at=5)
    other = changed(FLOW, flow_id="a")
    cycle_record = changed(RUNNING, cycle=changed(RUNNING.cycle, flow_id="a", number=1))
    assert await state.commit(FlowChange(Written(None, busy), Written(None, RUNNING)))
    assert await state.commit(FlowChange(Written(None, other), Written(None, cycle_record)))
    assert not await state.delete(moved(busy))
    assert await state.delete(busy)
    assert await state.load_flow("a_1") is None
    assert await state.load_cycle(busy, 0) is None
    assert (await state.flow_ids(), await state.running(), await state.next_due()) == (["a"], [], None)
    assert await state.load_cycle(other, 1) == cycle_record


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (("a_1", 2, "x"), ("a", 1, "2_x")),
        (("a:cycle:0", 1, "x"), ("a", 0, "x")),
        (("a", 0, "x:output"), ("a", 0, "x")),
        (("a%3Ab", 0, "x"), ("a:b", 0, "x")),
    ],
)
async def test_ids_with_special_characters_do_not_share_a_key(
    state: FlowState, first: tuple[str, int, str], second: tuple[str, int, str]
) -> None:
    written = []
    for flow_id, number, node in (first, second):
        flow = changed(FLOW, flow_id=flow_id)
        task = NodeTask(NodeStatus.COMPLETED, f"{flow_id} {number} {node}" * 9000, attempts=1)
        cycle = changed(RUNNING, cycle=Cycle(flow_id, number, 1, {node: task}))
        flow_record = await state.load_flow(flow_id)
        assert (
            await state.commit(FlowChange(None if flow_record else Written(None, flow), Written(None, cycle)))
            or flow_record
        )
        if not flow_record:
            written.append((flow, cycle))
    for flow, cycle in written:
        assert await state.load_flow(flow.flow_id) == flow
        assert await state.load_cycle(flow, cycle.cycle.number) == cycle


async def test_announced_changes_are_read_after_a_position(state: FlowState) -> None:
    position, found = await state.announced("")
    assert found == []
    assert await state.commit(FlowChange(Written(None, FLOW), announced=True))
    position, found = await state.announced(position)
    assert found == ["a_1"]
    assert await state.delete(FLOW)
    assert (await state.announced(position))[1] == ["a_1"]


TASK = QueuedTask(flow_id="a_1", cycle=0, node_id="x", kind="site.check", attempt=1, now=5, config={}, inputs={})


async def finish(state: FlowState, value: int) -> None:
    """Add the result of a worker."""
    result = result_of(TASK, ResultKind.COMPLETED, value=value)
    if isinstance(state, MemoryFlowState):
        state.finish(result)
    elif isinstance(state, RedisFlowState):
        store = vars(state)["_store"]
        await store.execute("XADD", flows_keys.node_results(store.keys), "*", "result", encode_result(result))


async def test_results_of_workers_stay_until_a_decision_consumes_them(state: FlowState) -> None:
    await finish(state, 1)
    await finish(state, 2)
    position, received_results = await state.results("")
    assert [received_result.result.value for received_result in received_results] == [1, 2]
    assert await state.commit(FlowChange(Written(None, FLOW), queued=(TASK,), taken=(received_results[0].entry_id,)))
    assert [result.result.value for result in (await state.results(""))[1]] == [2]
    await finish(state, 3)
    assert [result.result.value for result in (await state.results(position))[1]] == [3]
    assert not await state.commit(FlowChange(Written(None, FLOW), taken=(received_results[1].entry_id,)))
    assert [result.result.value for result in (await state.results(""))[1]] == [2, 3]
