"""The list of workers shows the tasks of each, also those of a worker that has ended."""

from edge.features.flows.worker_list import list_workers
from edge.store.client import Store
from tests.features.flows.test_work_queue import queued, taken_by, worker


async def test_workers_are_listed_with_their_tasks(store: Store) -> None:
    assert await list_workers(store) == []
    await queued(store)
    first = await worker(store, "a")
    await worker(store, "b")
    taken = await taken_by(first)
    (busy, idle) = await list_workers(store)
    assert (busy.id, busy.kinds, idle.id, idle.tasks) == ("a", ("site.check",), "b", ())
    (task,) = busy.tasks
    assert (task.flow_id, task.cycle, task.node_id, task.attempt, task.begun_at) == ("f", 3, "n", 2, None)
    assert await first.begin(taken)
    await first.save_progress(taken, 40, "half")
    (task,) = (await list_workers(store))[0].tasks
    assert (task.begun_at, task.progress, task.message) == (taken.begun_at, 40, "half")
    await first.unregister()
    assert [
        (listed_worker.id, listed_worker.last_heartbeat is None) for listed_worker in await list_workers(store)
    ] == [("a", True), ("b", False)]
