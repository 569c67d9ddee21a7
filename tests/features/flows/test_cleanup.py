"""The hourly clean-up removes only records without a reference."""

import json

from edge.features.flows import keys as flows_keys
from edge.features.flows.cleanup import CleanUp, clean_up
from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, Written
from edge.features.flows.work_queue import GROUP, WorkQueue
from edge.store.client import Store
from tests.features.flows.test_node_task_messages import TASK

FLOW = FlowRecord(flow_id="f", document="{}", created_at=1, last_cycle=3, in_cycle=True, next_at=5)
RUNNING = CycleRecord(
    cycle=Cycle("f", 3, 1, {"n": NodeTask(NodeStatus.RUNNING, attempts=2, started_at=4)}),
    document="{}",
    owner="edge",
    started_at=1,
)


async def running_flow(store: Store) -> RedisFlowState:
    """Store a flow with a running cycle whose node waits for a worker."""
    state = RedisFlowState(store)
    await state.commit(FlowChange(Written(None, FLOW), Written(None, RUNNING), queued=(TASK,)))
    return state


async def dump(store: Store) -> dict[str, object]:
    """Return the type of each key."""
    return {
        key: await store.execute("TYPE", key) for key in sorted(await store.execute("KEYS", f"{store.keys.prefix}:*"))
    }


async def test_clean_up_keeps_records_in_use(store: Store) -> None:
    await running_flow(store)
    worker = WorkQueue(store, "w", {"site.check": True}, 1000)
    await worker.register()
    assert await worker.take(1000)
    before = await dump(store)
    assert await clean_up(store, idle_ms=0) == CleanUp(0, 0, 0)
    assert await dump(store) == before
    (consumer,) = await store.execute("XINFO CONSUMERS", flows_keys.node_work(store.keys, "site.check"), GROUP)
    assert consumer["pending"] == 1


async def test_index_entries_without_a_flow_are_removed(store: Store) -> None:
    await running_flow(store)
    await store.execute("DEL", flows_keys.flow(store.keys, "f"))
    assert (await clean_up(store)).index_entries == 1
    assert await store.execute("ZCARD", flows_keys.flow_schedule(store.keys)) == 0
    assert await store.execute("SCARD", flows_keys.flows_running(store.keys)) == 0


async def test_tasks_of_a_deleted_flow_are_removed(store: Store) -> None:
    state = await running_flow(store)
    await store.execute("XADD", flows_keys.node_work(store.keys, "site.check"), "*", "task", "rubbish")
    assert await state.delete(FLOW)
    assert (await clean_up(store)).tasks == 2
    assert await store.execute("XLEN", flows_keys.node_work(store.keys, "site.check")) == 0


async def test_dead_worker_without_a_task_is_removed(store: Store) -> None:
    await running_flow(store)
    key = flows_keys.node_work(store.keys, "site.check")
    dead, idle = (WorkQueue(store, name, {"site.check": True}, 0) for name in ("dead", "idle"))
    await dead.register()
    assert await dead.take(1000)
    await idle.register()
    await idle.take(1)
    await store.execute("DEL", flows_keys.worker(store.keys, "dead"), flows_keys.worker(store.keys, "idle"))
    # "idle" has taken the task of "dead" over, and holds it.
    assert (await clean_up(store)).consumers == 0
    assert (await clean_up(store, idle_ms=0)).consumers == 1
    assert [value["name"] for value in await store.execute("XINFO CONSUMERS", key, GROUP)] == ["idle"]


async def test_task_written_while_its_flow_is_deleted_is_removed(store: Store) -> None:
    """Deletion removes every node of a cycle, also one whose task had no key when the keys were listed."""

    class SlowState(RedisFlowState):
        async def _node_keys(self, flow_id: str, cycles: object) -> set[str]:
            found = await super()._node_keys(flow_id, cycles)  # type: ignore[arg-type]
            await store.execute("SET", flows_keys.node_task(store.keys, "f", 3, "n"), json.dumps({}))
            return found

    state = SlowState(store)
    cycle = CycleRecord(cycle=Cycle("f", 3, 1, {"n": NodeTask()}), document="{}", owner="edge", started_at=1)
    await state.commit(FlowChange(Written(None, FLOW), Written(None, cycle)))
    assert await state.delete(FLOW)
    assert set(await dump(store)) <= {flows_keys.flow_signals(store.keys), store.keys.store_version()}
