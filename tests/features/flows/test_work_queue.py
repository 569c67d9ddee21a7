"""A task is leased to one worker at a time; a worker that lost its lease cannot report the task."""

import asyncio
import json

import pytest
from msgspec.structs import replace as changed

from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask
from edge.features.flows.record import CycleRecord, FlowRecord
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.state import FlowChange, Written
from edge.features.flows.work_queue import TakenTask, WorkQueue
from edge.features.flows.worker_task import ResultKind, TaskResult, result_of
from edge.store.client import Store
from tests.features.flows.test_worker_task import TASK

RUNNING = CycleRecord(
    cycle=Cycle("f", 3, 1, {"n": NodeTask(NodeStatus.RUNNING, attempts=2, started_at=4)}),
    document="{}",
    owner="edge",
    started_at=1,
)


async def queued(store: Store) -> RedisFlowState:
    """Queue the task of a running cycle."""
    state = RedisFlowState(store)
    flow = FlowRecord(flow_id="f", document="{}", created_at=1, last_cycle=3, in_cycle=True)
    await state.commit(FlowChange(Written(None, flow), Written(None, RUNNING), queued=(TASK,)))
    return state


async def worker(store: Store, name: str, *, lease_ms: int = 60_000, repeatable: bool = True) -> WorkQueue:
    found = WorkQueue(store, name, {"site.check": repeatable}, lease_ms)
    await found.register()
    return found


async def taken_by(queue: WorkQueue) -> TakenTask:
    taken = await queue.take(1000)
    assert taken
    return taken


async def results(state: RedisFlowState) -> list[TaskResult]:
    return [each.result for each in (await state.results(""))[1]]


async def test_task_is_claimed_and_reported_by_one_worker(store: Store) -> None:
    state = await queued(store)
    first, second = await worker(store, "a"), await worker(store, "b")
    taken = await taken_by(first)
    assert taken.task == TASK
    assert await second.take(1) is None
    assert await first.begin(taken)
    await first.save_progress(taken, 40, "half")
    mark = json.loads(await store.execute("GET", store.keys.node_worker("f", 3, "n")))
    assert (mark["worker_id"], mark["attempt"], mark["progress"], mark["message"]) == ("a", 2, 40, "half")
    assert await first.report(taken, result_of(TASK, ResultKind.COMPLETED, value=7))
    assert [each.value for each in await results(state)] == [7]
    assert await store.execute("XLEN", store.keys.node_work("site.check")) == 0


@pytest.mark.parametrize("repeatable", [True, False])
async def test_task_of_a_dead_worker_is_taken_over(store: Store, *, repeatable: bool) -> None:
    state = await queued(store)
    first = await worker(store, "a", repeatable=repeatable)
    second = await worker(store, "b", lease_ms=0, repeatable=repeatable)
    lost = await taken_by(first)
    assert await first.begin(lost)
    taken = await taken_by(second)
    assert await second.begin(taken) is repeatable
    # The first one was only slow.
    assert not await first.report(lost, result_of(TASK, ResultKind.COMPLETED, value="late"))
    if repeatable:
        assert await second.report(taken, result_of(TASK, ResultKind.COMPLETED, value="second"))
    (result,) = await results(state)
    assert (result.kind, result.value) == (
        (ResultKind.COMPLETED, "second") if repeatable else (ResultKind.INTERRUPTED, None)
    )


async def test_claimed_task_that_was_not_begun_runs_once(store: Store) -> None:
    await queued(store)
    await taken_by(await worker(store, "a", repeatable=False))
    second = await worker(store, "b", lease_ms=0, repeatable=False)
    assert await second.begin(await taken_by(second))


async def test_renewed_lease_is_not_taken_over(store: Store) -> None:
    await queued(store)
    first, second = await worker(store, "a"), await worker(store, "b")
    taken = await taken_by(first)
    await first.renew(taken)
    assert await second.take(1) is None


async def test_task_of_an_ended_node_is_dropped(store: Store) -> None:
    state = await queued(store)
    queue = await worker(store, "a")
    taken = await taken_by(queue)
    ended = Cycle("f", 3, 1, {"n": NodeTask(NodeStatus.TERMINATED, reason="x", attempts=2)})
    await state.commit(FlowChange(cycle=Written(RUNNING, changed(RUNNING, cycle=ended, revision=2))))
    assert not await queue.begin(taken)
    assert await store.execute("XLEN", store.keys.node_work("site.check")) == 0
    assert await store.execute("XLEN", store.keys.node_results()) == 0


async def test_worker_is_listed_until_it_leaves(store: Store) -> None:
    queue = await worker(store, "a")
    key = store.keys.worker("a")
    assert json.loads(await store.execute("GET", key))["kinds"] == ["site.check"]
    assert 0 < await store.execute("PTTL", key) <= 60_000
    await queue.unregister()
    assert await store.execute("EXISTS", key) == 0


async def test_task_of_a_deleted_flow_is_not_run_for_its_successor(store: Store) -> None:
    """A flow that is put again has the same ids: its node ran twice, and with the inputs of the former."""
    await queued(store)
    queue = await worker(store, "a")
    taken = await taken_by(queue)
    assert await queue.is_wanted(taken.task)
    assert not await queue.is_wanted(changed(taken.task, started_at=3))
    assert await queue.is_wanted(changed(taken.task, started_at=0)), "a gateway of an earlier release wrote it"


async def test_task_that_no_worker_has_taken_is_pending(store: Store) -> None:
    """Other programs, and people, saw it as running."""
    waiting = changed(RUNNING.cycle.tasks["n"], awaits_worker=True)
    record = changed(RUNNING, cycle=changed(RUNNING.cycle, tasks={"n": waiting}))
    flow = FlowRecord(flow_id="f", document="{}", created_at=1, last_cycle=3, in_cycle=True)
    state = RedisFlowState(store)
    await state.commit(FlowChange(Written(None, flow), Written(None, record), queued=(TASK,)))

    async def shown() -> tuple[str, str]:
        stored = json.loads(await store.execute("GET", store.keys.node_task("f", 3, "n")))
        loaded = await state.load_cycle(flow, 3)
        assert loaded
        assert loaded.cycle.tasks["n"].status is NodeStatus.RUNNING
        return stored["status"], loaded.cycle.tasks["n"].shown_status.value

    assert await shown() == ("pending", "pending")
    first = await worker(store, "a")
    taken = await taken_by(first)
    assert await shown() == ("pending", "pending")
    assert await first.begin(taken)
    assert await shown() == ("running", "running")


async def test_begin_of_a_task_stays_while_it_reports_progress(store: Store) -> None:
    await queued(store)
    first = await worker(store, "a")
    taken = await taken_by(first)
    assert await first.begin(taken)
    begun = []
    for progress in (10, 50, 90):
        await first.save_progress(taken, progress, "")
        begun.append(json.loads(await store.execute("GET", store.keys.node_worker("f", 3, "n")))["begun_at"])
        await asyncio.sleep(0.002)
    assert len(set(begun)) == 1
