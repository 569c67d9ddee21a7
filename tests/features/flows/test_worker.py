"""A worker runs the tasks of its node kinds and stops in order."""

import asyncio
from pathlib import Path

import pytest

from edge.features.flows import keys as flows_keys
from edge.features.flows.plan import Plans
from edge.features.flows.plugins import load_kinds
from edge.features.flows.redis_state import RedisFlowState
from edge.features.flows.work_queue import GROUP
from edge.features.flows.worker import FlowWorker, WorkerProcess
from edge.store.client import Store
from tests.features.flows.documents import flow, node
from tests.features.flows.gateways import Plant, reasons
from tests.features.flows.site_kinds import write_check

pytestmark = pytest.mark.slow

CHECK = flow(
    [node("a", "constant", value=[1, 2]), node("b", "site.check"), node("c", "expression", expr="input + 1")],
    "a>b b>c",
    interval_seconds=0,
)


async def test_task_of_a_flow_runs_in_a_worker(store: Store, tmp_path: Path) -> None:
    folder = write_check(tmp_path)
    kinds = load_kinds(folder)
    plant = Plant(RedisFlowState(store), Plans(kinds))
    worker = FlowWorker(store, "w", kinds, [WorkerProcess(folder, 0)])
    running = asyncio.create_task(worker.run())
    async with plant.gateway():
        await plant.run(CHECK)
        record = await plant.ended()
    assert record.cycle.tasks["c"].output == 4
    assert (await plant.service.load("flow")).memory == {"b": 1}
    worker.stop()
    async with asyncio.timeout(60):
        await running
    assert await store.execute("EXISTS", flows_keys.worker(store.keys, "w")) == 0


@pytest.mark.parametrize("restarted", [True, False])
async def test_result_of_a_worker_reaches_the_gateway_after_a_restart(
    store: Store, tmp_path: Path, *, restarted: bool
) -> None:
    """The cycle continues, although no gateway was there when the worker reported."""
    folder = write_check(tmp_path)
    kinds = load_kinds(folder)
    plant = Plant(RedisFlowState(store), Plans(kinds))
    async with plant.gateway("a"):
        await plant.run(CHECK)
        await plant.at("b")
    worker = FlowWorker(store, "w", kinds, [WorkerProcess(folder, 0)])
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(60):
        while not await store.execute("XLEN", flows_keys.node_results(store.keys)):  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    worker.stop()
    await running
    async with plant.gateway("a" if restarted else "b"):
        record = await plant.ended()
    assert record.cycle.tasks["c"].output == 4
    assert await store.execute("XLEN", flows_keys.node_results(store.keys)) == 0


@pytest.mark.parametrize("repeatable", [True, False])
async def test_stopped_worker_returns_its_task(store: Store, tmp_path: Path, *, repeatable: bool) -> None:
    """Another worker takes it at once, long before the lease expires; a node that must not run twice fails."""
    folder = write_check(tmp_path, repeatable=repeatable)
    kinds = load_kinds(folder)
    plant = Plant(RedisFlowState(store), Plans(kinds))
    hangs = [node("a", "constant", value=[1, 2]), node("b", "site.check", how="once", file=str(tmp_path / "begun"))]
    first = FlowWorker(store, "first", kinds, [WorkerProcess(folder, 0)], lease_s=3600, grace_s=0.0)
    second = FlowWorker(store, "second", kinds, [WorkerProcess(folder, 0)], lease_s=3600)
    async with plant.gateway():
        running = asyncio.create_task(first.run())
        await plant.run(flow(hangs, "a>b", interval_seconds=0))
        async with asyncio.timeout(60):
            while not (tmp_path / "begun").exists():  # noqa: ASYNC110 - another process begins
                await asyncio.sleep(0.01)
        first.stop()
        await running
        running = asyncio.create_task(second.run())
        record = await plant.ended()
        second.stop()
        await running
    task = record.cycle.tasks["b"]
    assert (task.output, task.reason) == ((3, None) if repeatable else (None, "interrupted"))


async def test_stopping_worker_completes_its_task_in_progress(store: Store, tmp_path: Path) -> None:
    folder = write_check(tmp_path)
    kinds = load_kinds(folder)
    plant = Plant(RedisFlowState(store), Plans(kinds))
    nodes = [node("a", "constant", value=[1, 2]), node("b", "site.check", how="works")]
    worker = FlowWorker(store, "w", kinds, [WorkerProcess(folder, 0)], grace_s=60)
    async with plant.gateway():
        running = asyncio.create_task(worker.run())
        await plant.run(flow(nodes, "a>b", interval_seconds=0))
        async with asyncio.timeout(60):
            while not await store.execute("EXISTS", flows_keys.node_worker(store.keys, "flow", 0, "b")):  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        worker.stop()
        await running
        record = await plant.ended()
    assert record.cycle.tasks["b"].output == 3
    assert await store.execute("XINFO CONSUMERS", flows_keys.node_work(store.keys, "site.check"), GROUP) == []


async def test_invalid_queue_entry_does_not_stop_the_worker(store: Store, tmp_path: Path) -> None:
    folder = write_check(tmp_path)
    kinds = load_kinds(folder)
    plant = Plant(RedisFlowState(store), Plans(kinds))
    key = flows_keys.node_work(store.keys, "site.check")
    await store.execute("XADD", key, "*", "task", "{")
    await store.execute("XADD", key, "*", "other", "1")
    worker = FlowWorker(store, "w", kinds, [WorkerProcess(folder, 0)])
    running = asyncio.create_task(worker.run())
    async with plant.gateway():
        await plant.run(CHECK)
        record = await plant.ended()
    assert record.cycle.tasks["c"].output == 4
    worker.stop()
    await running
    assert await store.execute("XLEN", key) == 0


async def test_task_without_a_worker_fails_after_its_timeout(plant: Plant, tmp_path: Path) -> None:
    plant.use(Plans(load_kinds(write_check(tmp_path))), worker_wait_s=0.0)
    nodes = [node("a", "constant", value=1), {**node("b", "site.check"), "timeout_seconds": 0.05}]
    async with plant.gateway():
        await plant.run(flow(nodes, "a>b", interval_seconds=0))
        record = await plant.ended()
    assert reasons(record) == {"b": "no worker of kind site.check has run it in time"}
