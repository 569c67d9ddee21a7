"""One child process of a worker: it runs an attempt at a time, and is killed when that takes too long."""

import asyncio
import contextlib
import json
import os
import resource
import signal
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from edge.features.flows.node_task import QueuedTask, ResultKind, TaskResult, result_of
from edge.features.flows.site_output import LARGEST_OUTPUT
from edge.foundation.computer import child_environment

SILENCE_S: Final = 300.0
_START_S: Final = 60.0
_LONGEST_LINE: Final = 4 * LARGEST_OUTPUT
_MOST_OF_MEMORY: Final = 0.75
"""A child that uses more of its limit after an attempt is replaced: what it leaks must not fail the next one."""
OnProgress = Callable[[int, str], Awaitable[bool]]
"""Takes percent and message; returns whether the attempt is still wanted."""


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
            reason = f"the process of the node did not start ({ended or str(error) or 'no answer in time'})"
            return result_of(task, ResultKind.FAILED, reason=reason)
        except asyncio.CancelledError:
            await self.kill()
            raise
        try:
            async with asyncio.timeout(None if task.timeout_ms is None else task.timeout_ms / 1000):
                answer = await self._ask(process, task, on_progress)
        except TimeoutError:
            await self.kill()
            return result_of(task, unknown, reason="timeout")
        except _SilentError:
            await self.kill()
            return result_of(task, unknown, reason=f"no progress for {self._silence_s:g} s")
        except (OSError, ValueError, EOFError) as error:
            ended = await self.kill()
            return result_of(task, unknown, reason=f"the process of the node ended ({ended or error})")
        except asyncio.CancelledError:
            await self.kill()
            raise
        if answer.get("spent") or self._is_bloated():
            await self.kill()
        if "failed" in answer:
            return result_of(task, ResultKind.FAILED, reason=str(answer["failed"]))
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

    async def kill(self) -> str:
        """Kill the child and all its processes; return how the child ended if it was not killed here."""
        process, self._process = self._process, None
        if process is None:
            return ""
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
            return ""
        return signal.Signals(-status).name if status < 0 else f"status {status}"


async def _send(process: asyncio.subprocess.Process, message: Mapping[str, Any]) -> None:
    if process.stdin is None:
        raise EOFError("no pipe")
    process.stdin.write(msgspec.json.encode(message) + b"\n")
    await process.stdin.drain()
