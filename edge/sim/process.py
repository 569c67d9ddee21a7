"""One child process: its output goes to a file, its readiness is noticed, its end is certain."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import edge
from edge.errors import Unavailable
from edge.links.background_task import background_task

_STOP_SECONDS = 8.0
_POLL_SECONDS = 0.02
_LAST_LINES = 15
_PACKAGES = str(Path(edge.__file__).parents[1])

READY = "ready: "
"""Each command of `edge sim` begins the line with this that it prints once its device can be used."""


class Process:
    """A process that runs. `log` holds what it has said on its standard output and error."""

    def __init__(self, name: str, child: asyncio.subprocess.Process, log: Path, ready: bytes) -> None:
        self.name = name
        self.log = log
        self._child = child
        self._ready = ready
        self._told_to_stop = False

    async def follow(self, on_end: Callable[[Unavailable], None]) -> None:
        """Wait for its end. When it has not been told to, `on_end` is told how it ended, with its last words."""
        status = await self._child.wait()
        if not self._told_to_stop:
            how = f"was ended by {signal.Signals(-status).name}" if status < 0 else f"ended with status {status}"
            on_end(Unavailable(f"the {self.name} {how}:\n{self.last_lines()}"))

    async def wait_until_ready(self) -> None:
        """Wait until it says that it is ready."""
        while self._ready not in self.log.read_bytes():  # noqa: ASYNC110 - a file has no event for us
            await asyncio.sleep(_POLL_SECONDS)

    def last_lines(self) -> str:
        """Return the last lines it has said, indented."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_LAST_LINES:])

    async def stop(self) -> None:
        """Ask it to end, and kill it with all it has started when it does not within _STOP_SECONDS."""
        self._told_to_stop = True
        with suppress(ProcessLookupError):
            self._child.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(_STOP_SECONDS):
                await self._child.wait()
        # It leads a process group of its own: what a process leaves behind when it dies is in there.
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        await self._child.wait()


@asynccontextmanager
async def open_process(
    name: str, arguments: Sequence[str], log: Path, ready: str, on_end: Callable[[Unavailable], None]
) -> AsyncIterator[Process]:
    """Start a process, and end it at the exit. Once it has said the words `ready`, it is; `on_end` is that of `follow`.

    It gets our environment without our own variables (`EDGE_...`), so that it does what its arguments say. Python finds
    this package in it, wherever it is installed.
    """
    with log.open("wb") as output:
        child = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_environment(),
            # Ctrl-C in a terminal is for us alone: the parts are stopped in their order.
            process_group=0,
        )
    process = Process(name, child, log, ready.encode())
    async with background_task(process.follow(on_end), f"follow {name}"):
        try:
            yield process
        finally:
            await process.stop()


async def run_process(arguments: Sequence[str]) -> None:
    """Run a process to its end, in the environment of `open_process`; raises Unavailable when it fails."""
    child = await asyncio.create_subprocess_exec(
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=_environment(),
    )
    output, _ = await child.communicate()
    if child.returncode:
        raise Unavailable(output.decode(errors="replace").strip())


def _environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_")}
    return ours | {"PYTHONPATH": _PACKAGES}
