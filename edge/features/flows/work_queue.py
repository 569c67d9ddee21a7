"""Claims tasks for a worker from the store, marks them as begun, renews leases, reports results; lists workers."""

import time
from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
import structlog
from msgspec import Struct

from edge.features.flows import keys as flows_keys
from edge.features.flows import node_task
from edge.features.flows.node_task import (
    QueuedTask,
    ResultKind,
    TaskResult,
    decode_task,
    encode_result,
    is_running_attempt,
    result_of,
)
from edge.foundation.instant import now_ms
from edge.store.client import Store
from edge.store.commit import Absent, Commit, Committed, Holds, join, operation
from edge.store.reads import Entry, create_group, entries, escape_pattern, scan_keys

RELEASED_MS: Final = 86_400_000
"""The idle time of a task that its worker has released: it is taken at once."""
_SLACK_S: Final = 0.5
"""How much less than the time between two looks an entry may have aged without a renewal."""


class PendingTask(Struct, frozen=True):
    """An entry that a worker has taken, and the time since it was taken or renewed, by the clock of the server."""

    entry_id: str
    consumer: str
    idle_ms: int


class _Watched(Struct, frozen=True):
    """The last look at an entry, and since when it has not been renewed, in seconds of the worker's clock."""

    pending: PendingTask
    looked: float
    since: float


class TaskLeases:
    """Records since when the entries of each kind have not been renewed."""

    def __init__(self, lease_ms: int, clock: Callable[[], float] = time.monotonic) -> None:
        """Create an empty record; a lease ends `lease_ms` after the first look without a renewal since."""
        self._lease_s = lease_ms / 1000
        self._clock = clock
        self._watched: dict[str, dict[str, _Watched]] = {}

    def expired(self, kind: str, pending: Sequence[PendingTask]) -> list[PendingTask]:
        """Return the entries of a kind whose lease has ended, by all entries as they were just read."""
        now, before = self._clock(), self._watched.get(kind, {})
        after = {
            pending_task.entry_id: self._look(before.get(pending_task.entry_id), pending_task, now)
            for pending_task in pending
        }
        self._watched[kind] = after
        return [
            watched.pending
            for watched in after.values()
            if watched.pending.idle_ms >= RELEASED_MS or now - watched.since >= self._lease_s
        ]

    def _look(self, last: _Watched | None, pending: PendingTask, now: float) -> _Watched:
        if last is None or last.pending.consumer != pending.consumer:
            return _Watched(pending, now, now)
        aged_s = (pending.idle_ms - last.pending.idle_ms) / 1000
        was_renewed = aged_s < now - last.looked - _SLACK_S
        return _Watched(pending, now, now if was_renewed else last.since)


def pending_tasks(reply: Sequence[Sequence[Any]]) -> list[PendingTask]:
    """Return the entries of a reply of XPENDING with its extended form."""
    return [PendingTask(str(entry_id), str(consumer), int(idle)) for entry_id, consumer, idle, _ in reply]


logger = structlog.get_logger(__name__)

GROUP = "workers"
HEARTBEAT_LIFETIME_MS = 60_000
_MARK_LIFETIME_MS = 86_400_000
_MOST_PENDING: Final = 100
"""Tasks at work whose leases are watched; the oldest come first."""


class Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The worker that began an attempt, and its progress."""

    worker_id: str
    attempt: int
    begun_at: int
    progress: int = 0
    message: str = ""


class TakenTask:
    """A task that a worker has taken."""

    def __init__(self, task: QueuedTask, entry_id: str) -> None:
        self.task = task
        self.entry_id = entry_id
        self.begun_at = now_ms()
        self.mark = ""
        """The mark as this worker wrote it; a worker that takes the task over writes another."""


class WorkQueue:
    """The queue of the tasks of some kinds. Every call raises Unavailable while the store is unavailable."""

    def __init__(self, store: Store, worker_id: str, kinds: dict[str, bool], lease_ms: int) -> None:
        """Claim tasks of `kinds`; the value of each says whether it is repeatable. A lease lasts `lease_ms`."""
        self._store = store
        self._worker_id = worker_id
        self._kinds = kinds
        self._leases = TaskLeases(lease_ms)

    async def register(self) -> None:
        """Create the consumer groups, and register this worker for another 60 s."""
        keys = self._store.keys
        for kind in self._kinds:
            await create_group(self._store, flows_keys.node_work(keys, kind), GROUP)
        about = {"id": self._worker_id, "kinds": sorted(self._kinds), "last_heartbeat": now_ms()}
        text = msgspec.json.encode(about).decode()
        key = flows_keys.worker(keys, self._worker_id)
        await self._store.commit(operation("SET", key, text, "PX", HEARTBEAT_LIFETIME_MS))

    async def unregister(self) -> None:
        """Remove this worker from the store; as a consumer only where it holds no task, which would be lost."""
        keys = self._store.keys
        await self._store.commit(operation("DEL", flows_keys.worker(keys, self._worker_id)))
        for kind in self._kinds:
            consumers = await self._store.execute("XINFO CONSUMERS", flows_keys.node_work(keys, kind), GROUP)
            if any(consumer["name"] == self._worker_id and not consumer["pending"] for consumer in consumers):
                await self._store.execute(
                    "XGROUP DELCONSUMER", flows_keys.node_work(keys, kind), GROUP, self._worker_id
                )

    async def take(self, block_ms: int) -> TakenTask | None:
        """Return a task whose lease has expired, else a new task; None when none arrives in time."""
        for kind in self._kinds:
            key = flows_keys.node_work(self._store.keys, kind)
            pending = pending_tasks(await self._store.execute("XPENDING", key, GROUP, "-", "+", _MOST_PENDING))
            for expired in self._leases.expired(kind, pending):
                # One that was renewed since has a shorter idle time, and is left.
                claim = ("XCLAIM", key, GROUP, self._worker_id, expired.idle_ms, expired.entry_id)
                for entry in entries(await self._store.execute(*claim)):
                    return await self._read(key, entry)
        streams = [flows_keys.node_work(self._store.keys, kind) for kind in self._kinds]
        reply = await self._store.wait(
            *("XREADGROUP", "GROUP", GROUP, self._worker_id, "COUNT", 1, "BLOCK", block_ms, "STREAMS"),
            *streams,
            *(">" for _ in streams),
        )
        for key in streams:
            for raw in (reply or {}).get(key, ()):
                for entry in entries(raw):
                    return await self._read(key, entry)
        return None

    async def _read(self, key: str, entry: Entry) -> TakenTask | None:
        """Return the task of an entry; one that cannot be read is removed, its node fails at its time limit."""
        try:
            return TakenTask(decode_task(entry.fields["task"]), entry.entry_id)
        except (KeyError, msgspec.MsgspecError) as error:
            logger.error("node task unreadable", key=key, entry=entry.entry_id, reason=str(error))
            await self._store.commit(self._remove(key, entry.entry_id))
            return None

    async def begin(self, taken: TakenTask) -> bool:
        """Mark a task as begun by this worker; return False when it is not to be run.

        A task that another worker began, of a kind that must not run twice, ends here as interrupted.
        """
        task, key = taken.task, self._mark_key(taken.task)
        while True:
            found = await self._store.execute("GET", key)
            earlier = msgspec.json.decode(found, type=Mark) if found else None
            task_key = flows_keys.node_task(self._store.keys, task.flow_id, task.cycle, task.node_id)
            text = await self._store.execute("GET", task_key)
            if not is_wanted(task, text):
                await self._store.commit(self._acknowledge(taken))
                return False
            guard = Commit(guards=(Holds(key, found) if found else Absent(key), Holds(task_key, text)))
            if (running := node_task.as_taken(text)) != text:
                guard = join((guard, operation("SET", task_key, running, "KEEPTTL")))
            taken.begun_at = now_ms()
            taken.mark = self._mark(taken)
            save = operation("SET", key, taken.mark, "PX", _MARK_LIFETIME_MS)
            was_begun = earlier is not None and earlier.attempt == task.attempt
            if was_begun and not self._kinds[task.kind]:
                result = result_of(task, ResultKind.INTERRUPTED)
                parts = (guard, save, self._add(result), self._acknowledge(taken))
                if isinstance(await self._store.commit(join(parts)), Committed):
                    return False
            elif isinstance(await self._store.commit(join((guard, save))), Committed):
                return True

    async def is_wanted(self, task: QueuedTask) -> bool:
        """Return whether the cycle still waits for this attempt: it was not terminated, and its flow not deleted."""
        text = await self._store.execute(
            "GET", flows_keys.node_task(self._store.keys, task.flow_id, task.cycle, task.node_id)
        )
        return is_wanted(task, text)

    async def renew(self, taken: TakenTask) -> None:
        """Renew the lease of a task."""
        key = flows_keys.node_work(self._store.keys, taken.task.kind)
        await self._store.execute("XCLAIM", key, GROUP, self._worker_id, 0, taken.entry_id, "JUSTID")

    async def save_progress(self, taken: TakenTask, progress: int, message: str) -> None:
        """Store the progress of a task, unless another worker has taken it."""
        key, text = self._mark_key(taken.task), self._mark(taken, progress, message)
        parts = (Commit(guards=(Holds(key, taken.mark),)), operation("SET", key, text, "PX", _MARK_LIFETIME_MS))
        if isinstance(await self._store.commit(join(parts)), Committed):
            taken.mark = text

    async def report(self, taken: TakenTask, result: TaskResult) -> bool:
        """Report the result of a task; return False when another worker has taken it over."""
        guard = Commit(guards=(Holds(self._mark_key(taken.task), taken.mark),))
        parts = (guard, self._add(result), self._acknowledge(taken))
        return isinstance(await self._store.commit(join(parts)), Committed)

    async def release(self, taken: TakenTask) -> None:
        """Release a task that has not ended: another worker takes it at once, unless one has done so already."""
        key = flows_keys.node_work(self._store.keys, taken.task.kind)
        claim = ("XCLAIM", key, GROUP, self._worker_id, 0, taken.entry_id, "IDLE", RELEASED_MS, "JUSTID")
        guard = Commit(guards=(Holds(self._mark_key(taken.task), taken.mark),))
        await self._store.commit(join((guard, operation(*claim))))

    def _add(self, result: TaskResult) -> Commit:
        return operation("XADD", flows_keys.node_results(self._store.keys), "*", "result", encode_result(result))

    def _acknowledge(self, taken: TakenTask) -> Commit:
        return self._remove(flows_keys.node_work(self._store.keys, taken.task.kind), taken.entry_id)

    def _remove(self, key: str, entry_id: str) -> Commit:
        return join((operation("XACK", key, GROUP, entry_id), operation("XDEL", key, entry_id)))

    def _mark_key(self, task: QueuedTask) -> str:
        return flows_keys.node_worker(self._store.keys, task.flow_id, task.cycle, task.node_id)

    def _mark(self, taken: TakenTask, progress: int = 0, message: str = "") -> str:
        attempt, begun_at = taken.task.attempt, taken.begun_at
        mark = Mark(worker_id=self._worker_id, attempt=attempt, begun_at=begun_at, progress=progress, message=message)
        return msgspec.json.encode(mark).decode()


def is_wanted(task: QueuedTask, text: str | None) -> bool:
    """Return whether a node task, as it is stored, still waits for the attempt of a queued task."""
    return text is not None and is_running_attempt(task, node_task.decode(text, None))


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
    async for batch in scan_keys(store, f"{escape_pattern(flows_keys.worker(keys, ''))}*"):
        for text in await store.read([("GET", key) for key in batch]):
            if text is not None:
                worker = msgspec.json.decode(text, type=ListedWorker)
                workers[worker.id] = worker
    tasks: dict[str, list[RunningTask]] = {}
    streams = {
        key async for batch in scan_keys(store, f"{escape_pattern(flows_keys.node_work(keys, ''))}*") for key in batch
    }
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
        text = await store.execute("GET", flows_keys.node_worker(store.keys, task.flow_id, task.cycle, task.node_id))
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
