"""One child process, with its output in a file, a readiness check and a guaranteed end."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import edge
from edge.foundation.errors import Unavailable
from edge.foundation.task_group import background_task
from edge.foundation.text import Text

_STOP_SECONDS = 8.0
_POLL_SECONDS = 0.02
_LAST_LINES = 15
_PACKAGES = str(Path(edge.__file__).parents[1])


class Process:
    """A running process; `log` contains its standard output and standard error."""

    def __init__(
        self, name: str, child: asyncio.subprocess.Process, log: Path, ready: bytes, stop_s: float = _STOP_SECONDS
    ) -> None:
        self.name = name
        self.log = log
        self._child = child
        self._ready = ready
        self._stop_s = stop_s
        self._is_stopping = False

    async def follow(self, on_end: Callable[[Unavailable], None]) -> None:
        """Wait for the end of the process; unless `stop` caused it, call `on_end` with status and last lines."""
        status = await self._child.wait()
        if not self._is_stopping:
            how = (
                Text.of("was ended by {signal}", signal=signal.Signals(-status).name)
                if status < 0
                else Text.of("ended with status {status}", status=status)
            )
            on_end(
                Unavailable(
                    Text.of("the {name} {how}:\n{last_lines}", name=self.name, how=how, last_lines=self.last_lines())
                )
            )

    async def wait_until_ready(self) -> None:
        """Wait until the log contains the text `ready`."""
        while self._ready not in self.log.read_bytes():  # noqa: ASYNC110 - a file has no event
            await asyncio.sleep(_POLL_SECONDS)

    def last_lines(self) -> str:
        """Return the last lines of the log, indented."""
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(f"  {line}" for line in lines[-_LAST_LINES:])

    async def stop(self) -> None:
        """Stop the process with SIGTERM; after its end or `stop_s` seconds, kill its whole process group."""
        self._is_stopping = True
        with suppress(ProcessLookupError):
            self._child.terminate()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._stop_s):
                await self._child.wait()
        # The process leads its own process group, which also contains its remaining descendants.
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
        await self._child.wait()


@asynccontextmanager
async def open_process(
    name: str,
    arguments: Sequence[str],
    log: Path,
    ready: str,
    on_end: Callable[[Unavailable], None],
    stop_s: float = _STOP_SECONDS,
) -> AsyncIterator[Process]:
    """Start a process and stop it at the exit. It is ready once it prints `ready`; `on_end` is that of `follow`.

    It inherits the environment without the variables `EDGE_...`, so that only its arguments configure it. PYTHONPATH
    contains this package, wherever it is installed.
    """
    with log.open("wb") as output:
        child = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            env=_environment(),
            # Ctrl-C in a terminal reaches this process only, which stops the parts in order.
            process_group=0,
        )
    process = Process(name, child, log, ready.encode(), stop_s)
    async with background_task(process.follow(on_end), f"follow {name}"):
        try:
            yield process
        finally:
            await process.stop()


async def run_process(arguments: Sequence[str]) -> str:
    """Run a process to its end in the environment of `open_process`; return its output, raise Unavailable with it."""
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
    return output.decode(errors="replace")


def _environment() -> dict[str, str]:
    ours = {name: value for name, value in os.environ.items() if not name.startswith("EDGE_")}
    return ours | {"PYTHONPATH": _PACKAGES}
