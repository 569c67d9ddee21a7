"""One child process of a worker: it runs an attempt at a time, and is killed when that takes too long."""

import asyncio
import contextlib
import json
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final

import msgspec

from edge.flows.worker_child import LARGEST_OUTPUT
from edge.flows.worker_task import QueuedTask, ResultKind, TaskResult, result_of

_LONGEST_LINE: Final = 4 * LARGEST_OUTPUT
OnProgress = Callable[[int, str], Awaitable[bool]]
"""Takes percent and message; returns whether the attempt is still wanted."""


class WorkerProcess:
    """Runs attempts in a child, which is started when it is needed."""

    def __init__(self, folder: str, memory_mb: int) -> None:
        """Load the kinds of a folder; a child that needs more than `memory_mb` fails its attempt. 0: no limit."""
        self._folder = folder
        self._memory_mb = memory_mb
        self._process: asyncio.subprocess.Process | None = None

    @property
    def pid(self) -> int | None:
        """Return the id of the child; None while there is none."""
        return self._process.pid if self._process else None

    async def run(self, task: QueuedTask, *, repeatable: bool, on_progress: OnProgress) -> TaskResult:
        """Run an attempt and return its result; the child is killed at the time limit and at a cancellation."""
        timeout_s = None if task.timeout_ms is None else task.timeout_ms / 1000
        unknown = ResultKind.FAILED if repeatable else ResultKind.INTERRUPTED
        try:
            async with asyncio.timeout(timeout_s):
                answer = await self._ask(task, on_progress)
        except TimeoutError:
            await self.kill()
            return result_of(task, unknown, reason="timeout")
        except (OSError, ValueError, EOFError) as error:
            ended = await self.kill()
            return result_of(task, unknown, reason=f"the process of the node ended ({ended or error})")
        except asyncio.CancelledError:
            await self.kill()
            raise
        if "failed" in answer:
            return result_of(task, ResultKind.FAILED, reason=str(answer["failed"]))
        return result_of(task, ResultKind.COMPLETED, value=answer["output"], memory=answer["memory"])

    async def _ask(self, task: QueuedTask, on_progress: OnProgress) -> Mapping[str, Any]:
        process = await self._started()
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
            line = await process.stdout.readline() if process.stdout else b""
            if not line:
                raise EOFError("no answer")
            answer: dict[str, Any] = json.loads(line)
            if "progress" not in answer:
                return answer
            wanted = await on_progress(answer["progress"], answer["message"])
            await _send(process, {"stop": not wanted})

    async def _started(self) -> asyncio.subprocess.Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "edge.flows.worker_child", self._folder),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=_LONGEST_LINE,
            )
            if self._memory_mb:
                size = self._memory_mb << 20
                resource.prlimit(self._process.pid, resource.RLIMIT_AS, (size, size))
        return self._process

    async def kill(self) -> str:
        """Kill the child; return how it ended, if it had by itself."""
        process, self._process = self._process, None
        if process is None:
            return ""
        ended = ""
        if process.stdout and process.stdout.at_eof():
            # Its pipe is closed: it ends by itself, unless it hangs in its end.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1.0):
                    await process.wait()
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        elif process.returncode < 0:
            ended = signal.Signals(-process.returncode).name
        else:
            ended = f"status {process.returncode}"
        return ended


async def _send(process: asyncio.subprocess.Process, message: Mapping[str, Any]) -> None:
    if process.stdin is None:
        raise EOFError("no pipe")
    process.stdin.write(msgspec.json.encode(message) + b"\n")
    await process.stdin.drain()
