"""Lists the workers of a store, each with the node tasks that it runs."""

from typing import Any, Final

import msgspec
from msgspec import Struct

from edge.features.flows.node_task import decode_task
from edge.features.flows.work_queue import GROUP, Mark
from edge.store.bulk_reads import escape_pattern, scan_keys
from edge.store.client import Store
from edge.store.stream import entries

_MOST_TASKS: Final = 1_000


class RunningTask(Struct, frozen=True, kw_only=True):
    """A node task that a worker has taken; `begun_at` is None until it begins, in milliseconds since the epoch."""

    flow_id: str
    cycle: int
    node_id: str
    kind: str
    attempt: int
    begun_at: int | None = None
    progress: int = 0
    message: str = ""


class ListedWorker(Struct, frozen=True, kw_only=True):
    """A worker with its kinds and tasks; without `last_heartbeat` it has ended and another one takes its tasks."""

    id: str
    kinds: tuple[str, ...] = ()
    last_heartbeat: int | None = None
    tasks: tuple[RunningTask, ...] = ()


async def list_workers(store: Store) -> list[ListedWorker]:
    """Return the workers by their ids, each with its tasks. Raises Unavailable."""
    keys = store.keys
    workers: dict[str, ListedWorker] = {}
    async for batch in scan_keys(store, f"{escape_pattern(keys.worker(''))}*"):
        for text in await store.read([("GET", key) for key in batch]):
            if text is not None:
                worker = msgspec.json.decode(text, type=ListedWorker)
                workers[worker.id] = worker
    tasks: dict[str, list[RunningTask]] = {}
    streams = {key async for batch in scan_keys(store, f"{escape_pattern(keys.node_work(''))}*") for key in batch}
    for key in sorted(streams):
        for entry_id, consumer, *_ in await _pending(store, key):
            if (task := await _task(store, key, str(entry_id), str(consumer))) is not None:
                tasks.setdefault(str(consumer), []).append(task)
    named = sorted({*workers, *tasks})
    listed = (workers.get(name, ListedWorker(id=name)) for name in named)
    return [msgspec.structs.replace(worker, tasks=tuple(tasks.get(worker.id, ()))) for worker in listed]


async def _pending(store: Store, key: str) -> list[Any]:
    groups = await store.execute("XINFO GROUPS", key)
    if not any(group["name"] == GROUP for group in groups):
        return []
    pending: list[Any] = await store.execute("XPENDING", key, GROUP, "-", "+", _MOST_TASKS)
    return pending


async def _task(store: Store, key: str, entry_id: str, worker: str) -> RunningTask | None:
    """Return the task of an entry; None when it has ended meanwhile or cannot be read."""
    for entry in entries(await store.execute("XRANGE", key, entry_id, entry_id)):
        try:
            task = decode_task(entry.fields["task"])
        except (KeyError, msgspec.MsgspecError):
            return None
        text = await store.execute("GET", store.keys.node_worker(task.flow_id, task.cycle, task.node_id))
        mark = msgspec.json.decode(text, type=Mark) if text else None
        is_begun = mark is not None and (mark.worker_id, mark.attempt) == (worker, task.attempt)
        return RunningTask(
            flow_id=task.flow_id,
            cycle=task.cycle,
            node_id=task.node_id,
            kind=task.kind,
            attempt=task.attempt,
            begun_at=mark.begun_at if mark and is_begun else None,
            progress=mark.progress if mark and is_begun else 0,
            message=mark.message if mark and is_begun else "",
        )
    return None
