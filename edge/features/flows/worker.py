"""Claims tasks of the node kinds of a site, runs each in a child process and reports its result."""

import asyncio
import contextlib
import functools

import structlog

from edge.features.flows.node_task import ResultKind, result_of
from edge.features.flows.nodes.registry import NodeKinds
from edge.features.flows.work_queue import TakenTask, WorkQueue
from edge.features.flows.worker_process import WorkerProcess
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import TaskGroup
from edge.store.background import retry_while_unavailable
from edge.store.client import Store

logger = structlog.get_logger(__name__)

HEARTBEAT_S = 30.0
TERMINATION_S = 5.0
"""How long a terminated attempt may continue until its next progress report."""
_BLOCK_MS = 1000
_RETURN_S = 2.0
_PAUSE_AFTER_DEFECT_S = 1.0


class FlowWorker:
    """Runs one task at a time in each of its processes, until it is stopped."""

    def __init__(
        self,
        store: Store,
        worker_id: str,
        kinds: NodeKinds,
        processes: list[WorkerProcess],
        *,
        lease_s: float = 15.0,
        grace_s: float = 15.0,
    ) -> None:
        """Claim tasks of `kinds`. Another worker claims a task whose lease of `lease_s` has expired.

        After a stop the tasks in progress have `grace_s` to end.
        """
        self._repeatable = {name: kind.repeatable for name, kind in kinds.items() if kind.in_worker}
        self._queue = WorkQueue(store, worker_id, self._repeatable, round(lease_s * 1000))
        self._processes = processes
        self._lease_s = lease_s
        self._grace_s = grace_s
        self._stopping = asyncio.Event()

    async def run(self) -> None:
        """Run tasks until `stop`; those in progress then end, or are returned when they take too long."""
        await retry_while_unavailable("worker", self._queue.register)
        async with TaskGroup() as tasks:
            heartbeat = tasks.create_task(self._heartbeat(), name="heartbeat")
            slots = [tasks.create_task(self._serve(process), name="worker slot") for process in self._processes]
            await self._stopping.wait()
            await asyncio.wait(slots, timeout=self._grace_s)
            for slot in (heartbeat, *slots):
                slot.cancel()
        with contextlib.suppress(Unavailable):
            await self._queue.unregister()

    def stop(self) -> None:
        """Take no further task."""
        self._stopping.set()

    async def _heartbeat(self) -> None:
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            await retry_while_unavailable("heartbeat", self._queue.register)

    async def _serve(self, process: WorkerProcess) -> None:
        try:
            while not self._stopping.is_set():
                try:
                    await retry_while_unavailable("node tasks", functools.partial(self._take, process))
                except Exception:  # a defect in one task must not stop the others; another worker resumes it
                    logger.exception("node task met a defect")
                    await process.kill()
                    await asyncio.sleep(_PAUSE_AFTER_DEFECT_S)
        finally:
            await process.kill()

    async def _take(self, process: WorkerProcess) -> None:
        taken = await self._queue.take(_BLOCK_MS)
        if taken is not None and await self._queue.begin(taken):
            await self._perform(taken, process)

    async def _perform(self, taken: TakenTask, process: WorkerProcess) -> None:
        task = taken.task

        async def on_progress(percent: int, message: str) -> bool:
            try:
                await self._queue.save_progress(taken, percent, message)
                return await self._queue.is_wanted(task)
            except Unavailable:
                return True

        attempt = process.run(task, repeatable=self._repeatable[task.kind], on_progress=on_progress)
        try:
            async with TaskGroup() as tasks:
                running = tasks.create_task(attempt, name="attempt")
                has_ended = await self._watch(taken, running)
                running.cancel()
        except asyncio.CancelledError:
            await self._return_task(taken)
            raise
        if not has_ended:
            return
        result = running.result()
        if not await retry_while_unavailable("node result", lambda: self._queue.report(taken, result)):
            logger.warning("node task taken over", flow=task.flow_id, cycle=task.cycle, node=task.node_id)

    async def _return_task(self, taken: TakenTask) -> None:
        """Release the task of a killed attempt; one that must not run twice ends here as interrupted."""
        task = taken.task
        logger.warning("node task returned", flow=task.flow_id, cycle=task.cycle, node=task.node_id)
        with contextlib.suppress(Unavailable, TimeoutError):
            async with asyncio.timeout(_RETURN_S):
                if self._repeatable[task.kind]:
                    await self._queue.release(taken)
                else:
                    await self._queue.report(taken, result_of(task, ResultKind.INTERRUPTED))

    async def _watch(self, taken: TakenTask, running: asyncio.Task[object]) -> bool:
        """Renew the lease of a task while it runs; return False when it was terminated."""
        unwanted_since: float | None = None
        every_s = min(self._lease_s / 3, 1.0)
        while True:
            await asyncio.wait((running,), timeout=every_s)
            if running.done():
                return True
            with contextlib.suppress(Unavailable):
                await self._queue.renew(taken)
                now = asyncio.get_running_loop().time()
                if await self._queue.is_wanted(taken.task):
                    unwanted_since = None
                elif unwanted_since is None:
                    unwanted_since = now
                elif now - unwanted_since >= TERMINATION_S:
                    logger.warning("node terminated", flow=taken.task.flow_id, node=taken.task.node_id)
                    await self._queue.begin(taken)
                    return False
