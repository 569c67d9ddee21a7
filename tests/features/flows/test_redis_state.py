"""Flows in Redis have the documented keys, types and lifetimes; deletion removes all keys of a flow."""

from msgspec.structs import replace as changed

from edge.app.features import features
from edge.features.flows import keys as flows_keys
from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask
from edge.features.flows.node_task import WorkerProgress
from edge.features.flows.redis_state import CYCLE_LIFETIME_MS, NODE_TASK_LIFETIME_MS, RedisFlowState, keep_answer
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, KeptAnswer, Written
from edge.store.client import Store
from edge.store.keys import key_specs

FLOW = FlowRecord(flow_id="press*report", document='{"id": 1}', created_at=5, revision=5, next_at=60_000, in_cycle=True)
TASKS = {"mean": NodeTask(NodeStatus.COMPLETED, "v" * 70_000, attempts=1), "publish": NodeTask()}
CYCLE = CycleRecord(
    cycle=Cycle("press*report", 0, 60_000, TASKS), document="{}", owner="edge", started_at=60_001, revision=60_001
)
BEGUN = FlowChange(Written(None, FLOW), Written(None, CYCLE), announced=True)


async def types(store: Store) -> dict[str, str]:
    """Return the type of each key without its prefix."""
    ours = sorted(await store.execute("KEYS", f"{store.keys.prefix}:*"))
    found = await store.read([("TYPE", key) for key in ours])
    return {key.removeprefix(f"{store.keys.prefix}:"): kind for key, kind in zip(ours, found, strict=True)}


async def test_keys_match_the_reference_page(store: Store) -> None:
    before = await types(store)
    await RedisFlowState(store).commit(BEGUN)
    new = {name: kind for name, kind in (await types(store)).items() if name not in before}
    assert new == {
        "flow:press*report": "hash",
        "flow:press*report:cycle:0": "hash",
        "flows:running": "set",
        "flows:schedule": "zset",
        "flows:signals": "stream",
        "node_tasks:press*report_0_mean": "string",
        "node_tasks:press*report_0_mean:output": "string",
    }
    features()
    specs = {spec.pattern: spec.type for spec in key_specs()}
    assert specs["flow:{flow}"] == "hash"
    assert specs["node_tasks:{flow}_{cycle}_{node}"] == "string"


async def test_cycles_and_node_tasks_expire_after_their_end(store: Store) -> None:
    """A task that expired while its cycle runs would be run again."""
    state, keys = RedisFlowState(store), store.keys
    await state.commit(BEGUN)
    for key in (flows_keys.flow_cycle(keys, "press*report", 0), flows_keys.node_task(keys, "press*report", 0, "mean")):
        assert await store.execute("PTTL", key) == -1
    ended = changed(CYCLE, ended_at=60_500, revision=CYCLE.revision + 1)
    await state.commit(FlowChange(cycle=Written(CYCLE, ended)))
    timed = {
        flows_keys.flow_cycle(keys, "press*report", 0): CYCLE_LIFETIME_MS,
        flows_keys.node_task(keys, "press*report", 0, "mean"): NODE_TASK_LIFETIME_MS,
        flows_keys.node_output(keys, "press*report", 0, "mean"): NODE_TASK_LIFETIME_MS,
    }
    for key, lifetime in timed.items():
        assert lifetime - 60_000 < await store.execute("PTTL", key) <= lifetime


async def test_deleted_flow_leaves_no_key_and_other_flows_keep_theirs(store: Store) -> None:
    state = RedisFlowState(store)
    other = changed(FLOW, flow_id="press-report")
    cycle_record = changed(CYCLE, cycle=changed(CYCLE.cycle, flow_id="press-report"))
    await state.commit(FlowChange(Written(None, other), Written(None, cycle_record), announced=True))
    before = await types(store)
    await state.commit(BEGUN)
    assert await state.delete(FLOW)
    assert await types(store) == before


async def test_ended_cycle_has_no_copy_of_the_flow_document(store: Store) -> None:
    state = RedisFlowState(store)
    await state.commit(BEGUN)
    key = flows_keys.flow_cycle(store.keys, "press*report", 0)
    assert await store.execute("HGET", key, "document") == "{}"
    ended = changed(CYCLE, ended_at=60_500, revision=CYCLE.revision + 1)
    assert await state.commit(FlowChange(cycle=Written(CYCLE, ended)))
    assert await store.execute("HGET", key, "document") is None
    assert await state.load_cycle(FLOW, 0) == changed(ended, document="")


async def test_unchanged_node_tasks_are_not_written_again(store: Store) -> None:
    state = RedisFlowState(store)
    await state.commit(BEGUN)
    await store.execute("DEL", flows_keys.node_task(store.keys, "press*report", 0, "mean"))
    running = changed(CYCLE.cycle, tasks={**TASKS, "publish": NodeTask(NodeStatus.RUNNING, attempts=1)})
    await state.commit(FlowChange(cycle=Written(CYCLE, changed(CYCLE, cycle=running, revision=CYCLE.revision + 1))))
    assert await store.execute("EXISTS", flows_keys.node_task(store.keys, "press*report", 0, "mean")) == 0
    assert await store.execute("EXISTS", flows_keys.node_task(store.keys, "press*report", 0, "publish")) == 1


async def test_progress_of_running_nodes_is_read(store: Store) -> None:
    state = RedisFlowState(store)
    tasks = {name: NodeTask(status=NodeStatus.RUNNING) for name in ("a", "b")} | {"c": NodeTask()}
    await store.execute(
        "SET", flows_keys.node_worker(store.keys, "f", 0, "a"), '{"worker_id":"w","attempt":1,"progress":7,"x":1}'
    )
    found = await state.progress(Cycle("f", 0, 0, tasks))
    assert found == {"a": WorkerProgress(worker_id="w", progress=7)}


async def test_answers_of_equipment_are_deleted_with_their_cycle(store: Store) -> None:
    state = RedisFlowState(store)
    await state.commit(BEGUN)
    await store.commit(keep_answer(store.keys, "press*report_0_mean", KeptAnswer(1, 5)))
    second = changed(CYCLE, cycle=Cycle("press*report", 1, 120_000, TASKS), revision=70_000)
    await state.commit(FlowChange(cycle=Written(None, second), expired=(0,)))
    assert [key for key in await types(store) if key.endswith(":answer")] == []
    await store.commit(keep_answer(store.keys, "press*report_1_mean", KeptAnswer(1, 5)))
    assert await state.delete(FLOW)
    assert [key for key in await types(store) if key.startswith("node_tasks")] == []
