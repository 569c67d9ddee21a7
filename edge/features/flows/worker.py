"""Claims tasks of the node kinds of a site, runs each in a child process and reports its result."""

import asyncio
import contextlib
import functools
import json
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec
import structlog

from edge.features.flows.cycle import TIMEOUT
from edge.features.flows.node_task import QueuedTask, ResultKind, TaskResult, result_of
from edge.features.flows.nodes.registry import NodeKinds
from edge.features.flows.site_output import LARGEST_OUTPUT
from edge.features.flows.work_queue import TakenTask, WorkQueue
from edge.foundation.computer import child_environment
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import TaskGroup
from edge.foundation.text import Text
from edge.store.background import retry_while_unavailable
from edge.store.client import Store

SILENCE_S: Final = 300.0
_START_S: Final = 60.0
_LONGEST_LINE: Final = 4 * LARGEST_OUTPUT
_MOST_OF_MEMORY: Final = 0.75
"""A child that uses more of its limit after an attempt is replaced: what it leaks must not fail the next one."""
OnProgress = Callable[[int, str], Awaitable[bool]]
"""Report percent and message; returns whether the attempt is still wanted."""


def stated(failed: str | list[Any]) -> str | Text:
    """Return the reason of a failure from the answer of a child."""
    return failed if isinstance(failed, str) else msgspec.convert(failed, Text)


class _SilentError(Exception):
    """The child neither answered nor reported progress."""


class WorkerProcess:
    """Runs attempts in a child, which is started when it is needed."""

    def __init__(
        self, folder: str, memory_mb: int, *, silence_s: float = SILENCE_S, excluded: Collection[str] = ()
    ) -> None:
        """Load the kinds of a folder without the excluded ones.

        An attempt fails when it needs more than `memory_mb` (0: no limit), or when it has no time limit and reports no
        progress for `silence_s`.
        """
        self._command = (sys.executable, "-P", "-m", "edge.features.flows.worker_child", folder, *excluded)
        self._memory = memory_mb << 20
        self._silence_s = silence_s
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Return the id of the child; None while there is none."""
        return self._process.pid if self._process else None

    async def run(self, task: QueuedTask, *, repeatable: bool, on_progress: OnProgress) -> TaskResult:
        """Run an attempt and return its result; the child is killed at the time limit and at a cancellation."""
        unknown = ResultKind.FAILED if repeatable else ResultKind.INTERRUPTED
        try:
            process = await self._started()
        except (OSError, ValueError, EOFError, TimeoutError) as error:
            ended = await self.kill()
            cause = ended or str(error) or Text.of("no answer in time")
            reason = Text.of("the process of the node did not start ({cause})", cause=cause)
            return result_of(task, ResultKind.FAILED, reason=reason)
        except asyncio.CancelledError:
            await self.kill()
            raise
        try:
            async with asyncio.timeout(None if task.timeout_ms is None else task.timeout_ms / 1000):
                answer = await self._ask(process, task, on_progress)
        except TimeoutError:
            await self.kill()
            return result_of(task, unknown, reason=TIMEOUT)
        except _SilentError:
            await self.kill()
            silent = Text.of("no progress for {seconds:g} s", seconds=self._silence_s)
            return result_of(task, unknown, reason=silent)
        except (OSError, ValueError, EOFError) as error:
            ended = await self.kill()
            stopped = Text.of("the process of the node ended ({cause})", cause=ended or error)
            return result_of(task, unknown, reason=stopped)
        except asyncio.CancelledError:
            await self.kill()
            raise
        if answer.get("spent") or self._is_bloated():
            await self.kill()
        if "failed" in answer:
            return result_of(task, ResultKind.FAILED, reason=stated(answer["failed"]))
        return result_of(
            task,
            ResultKind.COMPLETED,
            value=answer["output"],
            memory=answer["memory"],
            withheld=answer["withheld"],
        )

    async def _ask(
        self, process: asyncio.subprocess.Process, task: QueuedTask, on_progress: OnProgress
    ) -> Mapping[str, Any]:
        attempt = {
            "flow_id": task.flow_id,
            "node_id": task.node_id,
            "number": task.attempt,
            "now": task.now,
            "inputs": task.inputs,
            "memory": task.memory,
        }
        await _send(process, {"kind": task.kind, "config": task.config, "attempt": attempt})
        while True:
            answer = await self._read(process, self._silence_s if task.timeout_ms is None else None)
            if "progress" not in answer:
                return answer
            wanted = await on_progress(answer["progress"], answer["message"])
            await _send(process, {"stop": not wanted})

    async def _read(self, process: asyncio.subprocess.Process, limit_s: float | None) -> dict[str, Any]:
        limit = asyncio.timeout(limit_s)
        try:
            async with limit:
                line = await process.stdout.readline() if process.stdout else b""
        except TimeoutError:
            raise _SilentError from None
        if not line:
            raise EOFError("no answer")
        answer: dict[str, Any] = json.loads(line)
        return answer

    async def _started(self) -> asyncio.subprocess.Process:
        """Return the child; a new one has loaded its kinds, so that this does not count as time of an attempt."""
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *self._command,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
                env=child_environment(),
                # Ctrl-C is for the worker, which lets attempts end; and what a node starts is killed with it.
                start_new_session=True,
            )
            if self._memory:
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, (self._memory, self._memory))
            async with asyncio.timeout(_START_S):
                await self._read(self._process, None)
        return self._process

    def _is_bloated(self) -> bool:
        if not self._memory or self._process is None:
            return False
        try:
            pages = int(Path(f"/proc/{self._process.pid}/statm").read_text(encoding="ascii").split()[0])
        except (OSError, IndexError):
            return True
        return pages * resource.getpagesize() > _MOST_OF_MEMORY * self._memory

    async def kill(self) -> str | Text | None:
        """Kill the child and all its processes; return how the child ended if it was not killed here."""
        process, self._process = self._process, None
        if process is None:
            return None
        if process.stdout and process.stdout.at_eof():
            # Its pipe is closed: the child exits, unless its shutdown hangs.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await process.wait()
        status = process.returncode
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        if status is None:
            return None
        return signal.Signals(-status).name if status < 0 else Text.of("status {status}", status=status)


async def _send(process: asyncio.subprocess.Process, message: Mapping[str, Any]) -> None:
    # Of a process that has ended uvloop has closed the pipe; to write to it would be a RuntimeError.
    if process.stdin is None or process.stdin.is_closing():
        raise EOFError("no pipe")
    process.stdin.write(msgspec.json.encode(message) + b"\n")
    await process.stdin.drain()


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
        taken_task = await self._queue.take(_BLOCK_MS)
        if taken_task is not None and await self._queue.begin(taken_task):
            await self._perform(taken_task, process)

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
