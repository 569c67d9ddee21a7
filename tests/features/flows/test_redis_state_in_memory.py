"""A random sequence of changes has the same effect in memory as in Redis."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace as changed

from edge.config import RedisSettings
from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, FlowState, Written
from edge.foundation.text import Text
from edge.store.open_store import open_store
from tests.features.flows.memory_state import MemoryFlowState

CALLS = st.lists(
    st.tuples(
        st.sampled_from(["register", "move", "cycle", "advance", "delete"]),
        st.sampled_from(["a", "a_1", "b:cycle"]),
        st.integers(0, 3),
        st.booleans(),
    ),
    max_size=25,
)

REASONS = ("", "wrong tag", Text.of("by {person}", person="eve"), "by hand")


async def call(state: FlowState, step: tuple[str, str, int, bool]) -> Any:
    """Make one change and return what the state answers; `stale` decides on a record that was not read."""
    what, flow_id, number, stale = step
    flow = await state.load_flow(flow_id)
    if what == "register":
        return await state.commit(FlowChange(Written(None, FlowRecord(flow_id=flow_id, document="{}", created_at=1))))
    if flow is None:
        return None
    flow_record = changed(flow, revision=flow.revision + 9) if stale else flow
    if what == "delete":
        return await state.delete(flow_record)
    if what == "move":
        after = changed(
            flow_record,
            next_at=number or None,
            in_cycle=bool(number),
            reason=REASONS[number],
            revision=flow_record.revision + 1,
        )
        return await state.commit(FlowChange(Written(flow_record, after), announced=True))
    record = await state.load_cycle(flow, number)
    if record is None or what == "cycle":
        cycle = CycleRecord(cycle=Cycle(flow_id, number, 1, {"x": NodeTask()}), document="{}", owner="e", started_at=1)
        return await state.commit(FlowChange(cycle=Written(None, cycle), expired=(number - 2,) if number > 1 else ()))
    task = NodeTask(NodeStatus.COMPLETED, [number], attempts=1)
    read = changed(record, revision=record.revision + 9) if stale else record
    advanced = changed(read, cycle=changed(read.cycle, tasks={"x": task}), revision=read.revision + 1)
    return await state.commit(FlowChange(cycle=Written(read, advanced)))


async def content(state: FlowState) -> list[Any]:
    """Return everything a state holds."""
    found: list[Any] = [await state.running(), await state.next_due(), await state.due(9, 9)]
    for flow_id in await state.flow_ids():
        flow = await state.load_flow(flow_id)
        assert flow
        found += [flow, *[await state.load_cycle(flow, number) for number in range(4)]]
    return found


@pytest.mark.hypothesis
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(calls=CALLS)
async def test_random_changes_have_the_same_effect_in_memory_and_in_redis(
    redis: RedisSettings, calls: list[tuple[str, str, int, bool]]
) -> None:
    async with open_store(redis, "edge") as store:
        memory, shared = MemoryFlowState(), RedisFlowState(store)
        for step in calls:
            assert await call(memory, step) == await call(shared, step), step
        assert await content(memory) == await content(shared)
        for flow_id in await shared.flow_ids():
            flow = await shared.load_flow(flow_id)
            assert flow
            await shared.delete(flow)
