"""A task is leased to one worker at a time; a worker that lost its lease cannot report the task."""

import asyncio
import json

import pytest
from msgspec.structs import replace as changed

from edge.features.flows import keys as flows_keys
from edge.features.flows.cycle import Cycle, NodeStatus, NodeTask
from edge.features.flows.node_task import ResultKind, TaskResult, result_of
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.state import CycleRecord, FlowChange, FlowRecord, Written
from edge.features.flows.work_queue import (
    RELEASED_MS,
    PendingTask,
    TakenTask,
    TaskLeases,
    WorkQueue,
    list_workers,
    pending_tasks,
)
from edge.store.client import Store
from tests.features.flows.test_node_task_messages import TASK

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
    work_queue = WorkQueue(store, name, {"site.check": repeatable}, lease_ms)
    await work_queue.register()
    return work_queue


async def taken_by(queue: WorkQueue) -> TakenTask:
    taken_task = await queue.take(1000)
    assert taken_task
    return taken_task


async def results(state: RedisFlowState) -> list[TaskResult]:
    return [result.result for result in (await state.results(""))[1]]


async def test_task_is_claimed_and_reported_by_one_worker(store: Store) -> None:
    state = await queued(store)
    first, second = await worker(store, "a"), await worker(store, "b")
    taken_task = await taken_by(first)
    assert taken_task.task == TASK
    assert await second.take(1) is None
    assert await first.begin(taken_task)
    await first.save_progress(taken_task, 40, "half")
    mark = json.loads(await store.execute("GET", flows_keys.node_worker(store.keys, "f", 3, "n")))
    assert (mark["worker_id"], mark["attempt"], mark["progress"], mark["message"]) == ("a", 2, 40, "half")
    assert await first.report(taken_task, result_of(TASK, ResultKind.COMPLETED, value=7))
    assert [result.value for result in await results(state)] == [7]
    assert await store.execute("XLEN", flows_keys.node_work(store.keys, "site.check")) == 0


@pytest.mark.parametrize("repeatable", [True, False])
async def test_task_of_a_dead_worker_is_taken_over(store: Store, *, repeatable: bool) -> None:
    state = await queued(store)
    first = await worker(store, "a", repeatable=repeatable)
    second = await worker(store, "b", lease_ms=0, repeatable=repeatable)
    lost = await taken_by(first)
    assert await first.begin(lost)
    taken_task = await taken_by(second)
    assert await second.begin(taken_task) is repeatable
    # The first one was only slow.
    assert not await first.report(lost, result_of(TASK, ResultKind.COMPLETED, value="late"))
    if repeatable:
        assert await second.report(taken_task, result_of(TASK, ResultKind.COMPLETED, value="second"))
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
    taken_task = await taken_by(first)
    await first.renew(taken_task)
    assert await second.take(1) is None


async def test_task_of_an_ended_node_is_dropped(store: Store) -> None:
    state = await queued(store)
    queue = await worker(store, "a")
    taken_task = await taken_by(queue)
    ended = Cycle("f", 3, 1, {"n": NodeTask(NodeStatus.TERMINATED, reason="x", attempts=2)})
    await state.commit(FlowChange(cycle=Written(RUNNING, changed(RUNNING, cycle=ended, revision=2))))
    assert not await queue.begin(taken_task)
    assert await store.execute("XLEN", flows_keys.node_work(store.keys, "site.check")) == 0
    assert await store.execute("XLEN", flows_keys.node_results(store.keys)) == 0


async def test_worker_is_listed_until_it_leaves(store: Store) -> None:
    queue = await worker(store, "a")
    key = flows_keys.worker(store.keys, "a")
    assert json.loads(await store.execute("GET", key))["kinds"] == ["site.check"]
    assert 0 < await store.execute("PTTL", key) <= 60_000
    await queue.unregister()
    assert await store.execute("EXISTS", key) == 0


async def test_task_of_a_deleted_flow_is_not_run_for_its_successor(store: Store) -> None:
    """A flow that is put again has the same ids: its node ran twice, and with the inputs of the former."""
    await queued(store)
    queue = await worker(store, "a")
    taken_task = await taken_by(queue)
    assert await queue.is_wanted(taken_task.task)
    assert not await queue.is_wanted(changed(taken_task.task, started_at=3))
    assert await queue.is_wanted(changed(taken_task.task, started_at=0)), "a gateway of an earlier release wrote it"


async def test_task_that_no_worker_has_taken_is_pending(store: Store) -> None:
    """Other programs, and people, saw it as running."""
    waiting = changed(RUNNING.cycle.tasks["n"], awaits_worker=True)
    record = changed(RUNNING, cycle=changed(RUNNING.cycle, tasks={"n": waiting}))
    flow = FlowRecord(flow_id="f", document="{}", created_at=1, last_cycle=3, in_cycle=True)
    state = RedisFlowState(store)
    await state.commit(FlowChange(Written(None, flow), Written(None, record), queued=(TASK,)))

    async def shown() -> tuple[str, str]:
        stored = json.loads(await store.execute("GET", flows_keys.node_task(store.keys, "f", 3, "n")))
        loaded = await state.load_cycle(flow, 3)
        assert loaded
        assert loaded.cycle.tasks["n"].status is NodeStatus.RUNNING
        return stored["status"], loaded.cycle.tasks["n"].shown_status.value

    assert await shown() == ("pending", "pending")
    first = await worker(store, "a")
    taken_task = await taken_by(first)
    assert await shown() == ("pending", "pending")
    assert await first.begin(taken_task)
    assert await shown() == ("running", "running")


async def test_begin_of_a_task_stays_while_it_reports_progress(store: Store) -> None:
    await queued(store)
    first = await worker(store, "a")
    taken_task = await taken_by(first)
    assert await first.begin(taken_task)
    begun = []
    for progress in (10, 50, 90):
        await first.save_progress(taken_task, progress, "")
        begun.append(
            json.loads(await store.execute("GET", flows_keys.node_worker(store.keys, "f", 3, "n")))["begun_at"]
        )
        await asyncio.sleep(0.002)
    assert len(set(begun)) == 1


LEASE_S = 30.0


def ends(looks: list[tuple[float, str, float]]) -> bool:
    """Return whether a lease has ended at the last of some looks: instant, worker and idle time, in seconds."""
    now, tasks = 0.0, []
    leases = TaskLeases(int(LEASE_S * 1000), lambda: now)
    for now, consumer, idle_s in looks:  # noqa: B007 - the clock of the leases
        tasks = leases.expired("site.check", [PendingTask("1-0", consumer, round(idle_s * 1000))])
    return bool(tasks)


def steady(until: int, idle: float = 0.0, jump: float = 0.0, at: int = 10) -> list[tuple[float, str, float]]:
    """Return looks each five seconds at a task that is not renewed; at an instant the clock of the server jumps."""
    return [(now, "w", idle + now + (jump if now >= at else 0.0)) for now in range(0, until + 1, 5)]


@pytest.mark.parametrize(
    ("looks", "ended"),
    [
        (steady(25), False),
        (steady(30), True),
        (steady(0, idle=3600.0), False),
        (steady(25, jump=60.0), False),
        (steady(30, jump=60.0), True),
        (steady(35, idle=90.0, jump=-60.0), False),
        (steady(40, idle=90.0, jump=-60.0), True),
        ([(now, "w", 0.2) for now in range(0, 120, 5)], False),
        ([(now, "w", now % 10) for now in range(0, 120, 5)], False),
        ([*steady(25), (30, "v", 1.0)], False),
        ([(0, "w", 0.0), (600, "w", 600.0)], True),
        ([(0, "w", 0.0), (600, "w", 3.0)], False),
        ([(0, "w", RELEASED_MS / 1000)], True),
    ],
    ids=[
        "shorter than the lease",
        "not renewed for the lease",
        "first look",
        "server a minute ahead after a failover",
        "server a minute ahead, then not renewed",
        "server a minute behind after a failover",
        "server a minute behind, then not renewed",
        "renewed in step with the looks",
        "renewed each ten seconds",
        "taken by another worker",
        "not renewed while the worker was busy",
        "renewed while the worker was busy",
        "released",
    ],
)
def test_lease_ends_without_a_renewal_only(looks: list[tuple[float, str, float]], *, ended: bool) -> None:
    assert ends(looks) is ended


def test_tasks_that_are_done_are_forgotten() -> None:
    now = 0.0
    leases = TaskLeases(1000, lambda: now)
    task = PendingTask("1-0", "w", 0)
    leases.expired("a", [task])
    leases.expired("a", [])
    now = 60.0
    assert leases.expired("a", [task]) == []
    assert leases.expired("b", [task]) == []


def test_reply_of_the_server_is_read() -> None:
    assert pending_tasks([["1-0", "w", 1500, 2]]) == [PendingTask("1-0", "w", 1500)]


async def test_workers_are_listed_with_their_tasks(store: Store) -> None:
    assert await list_workers(store) == []
    await queued(store)
    first = await worker(store, "a")
    await worker(store, "b")
    taken_task = await taken_by(first)
    (busy, idle) = await list_workers(store)
    assert (busy.id, busy.kinds, idle.id, idle.tasks) == ("a", ("site.check",), "b", ())
    (task,) = busy.tasks
    assert (task.flow_id, task.cycle, task.node_id, task.attempt, task.begun_at) == ("f", 3, "n", 2, None)
    assert await first.begin(taken_task)
    await first.save_progress(taken_task, 40, "half")
    (task,) = (await list_workers(store))[0].tasks
    assert (task.begun_at, task.progress, task.message) == (taken_task.begun_at, 40, "half")
    await first.unregister()
    assert [
        (listed_worker.id, listed_worker.last_heartbeat is None) for listed_worker in await list_workers(store)
    ] == [("a", True), ("b", False)]
